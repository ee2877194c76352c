# frozen_string_literal: true

require_relative "error"

module Castellan
  module Serializer
    # An include that is no relationship of the serializer. A {BadRequest}, because includes come from clients.
    #
    #   rescue Castellan::Serializer::UnsupportedIncludeError => error
    #   error.include_item   # => :rolse
    #   error.klass          # => "UserSerializer"
    class UnsupportedIncludeError < Error
      # @return [Symbol]
      # @return [String]
      attr_reader :include_item, :klass

      def initialize(include_item, klass)
        @include_item = include_item
        @klass = klass
        super("#{include_item} is not specified as a relationship on #{klass}", parameter: "include", title: "Invalid include")
      end
    end
  end
end
