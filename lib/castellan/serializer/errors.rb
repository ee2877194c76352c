# frozen_string_literal: true

module Castellan
  module Serializer
    # The parent of errors that a client can cause, under the name that jsonapi-serializer has for it.
    class Error < BadRequest; end

    # Raised for a record without an id in a serializer without `set_id`: a mistake of the developer.
    class MandatoryField < Castellan::Error; end

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
