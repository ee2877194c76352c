# frozen_string_literal: true

module Castellan
  module Serializer
    # `blank?` of ActiveSupport, without it: nil, false, empty objects, strings of spaces alone.
    #
    #   Blank.blank?(" ")   # => true
    #   Blank.blank?(0)     # => false
    module Blank
      SPACES = /\A[[:space:]]*\z/
      private_constant :SPACES

      module_function

      # @return [Boolean]
      def blank?(value)
        case value
        when Integer then false
        when String then value.empty? || (value.valid_encoding? && SPACES.match?(value))
        when nil, false then true
        else value.respond_to?(:empty?) ? value.empty? : false
        end
      end
    end
  end
end
