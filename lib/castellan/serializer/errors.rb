# frozen_string_literal: true

module Castellan
  module Serializer
    # The superclass of errors that clients can cause, with the name in jsonapi-serializer.
    class Error < BadRequest; end

    # Raised for a record without an id if the serializer has no `set_id`.
    class MandatoryField < Castellan::Error; end

    # Raised for an include that is not a relationship of the serializer.
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
