# frozen_string_literal: true

module Castellan
  module Rows
    # Wraps loaded records, so that they can replace a relation or dataset.
    #
    #   records = Records.new([ada, alan])
    #   records.to_a            # => [ada, alan]
    #   Records.of(ada)         # => one record, for a document of a single resource
    #
    # A record is an instance of ActiveRecord or Sequel, any object with readers, or a Hash.
    class Records
      # @param object [Object, nil] the argument of {Resource.document}; nil
      #   if the single record was not found
      # @return [Records]
      def self.of(object)
        return new([], single: true) if object.nil?
        return new(once(object)) if list?(object)

        new([object], single: true)
      end

      # A relation with a join may return a record several times; documents contain each record once.
      def self.once(object)
        joined = object.respond_to?(:joins_values) && (object.joins_values.any? || object.left_outer_joins_values.any?)
        joined ? object.to_a.uniq : object.to_a
      end
      private_class_method :once

      # @return [Boolean] whether the object is a list; a Hash and a Struct are one record
      def self.list?(object)
        object.respond_to?(:to_ary) || (object.is_a?(Enumerable) && !object.is_a?(Hash) && !object.is_a?(Struct))
      end

      # @return [Array<Object>]
      attr_reader :to_a

      # @param single [Boolean] whether the document has a single resource
      def initialize(list, single: false)
        @to_a = list
        @single = single
      end

      # @return [Records] the given records without nil, single if these are
      def only(records) = Records.new(records.compact, single: single?)
      def single? = @single
    end
  end
end
