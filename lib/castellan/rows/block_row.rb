# frozen_string_literal: true

module Castellan
  module Rows
    # The small row that a computed attribute's block sees: the columns that it named, and no others.
    #
    #   BlockRow.each(%i[first_name last_name], [%w[Ada Alan], %w[Lovelace Turing]], 2)
    #   # => [#<struct first_name="Ada", last_name="Lovelace">, …]
    module BlockRow
      CLASSES = {} # rubocop:disable Style/MutableConstant
      LOCK = Mutex.new
      private_constant :CLASSES, :LOCK

      module_function

      # @param names [Array<Symbol>]
      # @param columns [Array<Array>] the values of each
      # @param size [Integer] how many rows
      # @return [Array<Struct>]
      def each(names, columns, size)
        row = class_of(names)
        Array.new(size) { |index| row.new(*columns.map { |column| column[index] }) }
      end

      # Few and fixed: the lists of columns that declarations name.
      def class_of(names)
        LOCK.synchronize { CLASSES[names] ||= names.empty? ? Struct.new(:id) : Struct.new(*names) }
      end
      private_class_method :class_of
    end
  end
end
