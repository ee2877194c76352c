# frozen_string_literal: true

require "bigdecimal"
require "date"

module Castellan
  module Rows
    # Chooses a coder for Ruby values if all have the same plain class; otherwise each is encoded as JSON.
    #
    #   RubyValues.coder([1, nil, 2])        # => :integer
    #   RubyValues.coder([1, "two"])         # => nil
    #
    # Times have no coder here, because their format depends on the application.
    module RubyValues
      CODERS = { String => :text, Symbol => :text, Integer => :integer, TrueClass => :boolean, FalseClass => :boolean, Float => :float,
                 Date => :date }.freeze
      private_constant :CODERS

      module_function

      # @param values [Array<Object>]
      # @return [Symbol, nil] nil if each value must be encoded as JSON
      def coder(values)
        kinds = values.uniq(&:class)
        kinds = kinds.map(&:class) - [NilClass]
        coders = kinds.map { |kind| CODERS[kind] }.uniq
        return :text if coders.empty?

        coders.first if coders.size == 1 && (coders.first != :date || iso_dates?)
      end

      # Rails may be configured to write dates as 2024/01/31.
      def iso_dates?
        !defined?(::ActiveSupport::JSON::Encoding) || ::ActiveSupport::JSON::Encoding.use_standard_json_time_format
      end
    end
  end
end
