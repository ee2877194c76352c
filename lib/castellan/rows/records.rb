# frozen_string_literal: true

module Castellan
  module Rows
    # Records that the caller has already: what stands where a relation or a dataset would, and is read without asking for its rows.
    #
    #   records = Records.new([ada, alan])
    #   records.to_a            # => [ada, alan]
    #   Records.of(ada)         # => the one record, for a document of a single resource
    #
    # A record is an instance of ActiveRecord or Sequel, any object with readers, or a Hash by names.
    class Records
      # @param object what was given to {Resource.document}; nil is no record where one was looked for
      # @return [Records]
      def self.of(object)
        return new([], single: true) if object.nil?
        return new(once(object)) if list?(object)

        new([object], single: true)
      end

      # A relation with a join may hold a record several times; read as rows it would be there once.
      def self.once(object)
        joined = object.respond_to?(:joins_values) && (object.joins_values.any? || object.left_outer_joins_values.any?)
        joined ? object.to_a.uniq : object.to_a
      end
      private_class_method :once

      # @return [Boolean] whether it holds several; a Hash and a Struct are one record
      def self.list?(object)
        object.respond_to?(:to_ary) || (object.is_a?(Enumerable) && !object.is_a?(Hash) && !object.is_a?(Struct))
      end

      # @return [Array<Object>]
      attr_reader :to_a

      # @param list [Array<Object>]
      # @param single [Boolean] whether the document is of one resource, not of a list
      def initialize(list, single: false)
        @to_a = list
        @single = single
      end

      # @param records [Array<Object, nil>] some of them
      # @return [Records]
      def only(records)
        Records.new(records.compact, single: single?)
      end

      # @return [Boolean]
      def single?
        @single
      end
    end
  end
end
