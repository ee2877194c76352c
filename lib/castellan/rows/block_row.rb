# frozen_string_literal: true

module Castellan
  module Rows
    # Builds the rows that a computed attribute's block receives, with the declared columns only.
    #
    #   BlockRow.each(%i[first_name last_name], [%w[Ada Alan], %w[Lovelace Turing]], 2)
    #   # => [#<struct first_name="Ada", last_name="Lovelace">, …]
    module BlockRow
      # Raises an error that names the column if a block reads one that its declaration does not list.
      module Unnamed
        def method_missing(name, *)
          return super if name.end_with?("=", "?", "!") || name.start_with?("to_")

          raise NoMethodError.new("the block reads #{name}, which it does not name: write columns: #{[*members, name].inspect} (or leave " \
                                  "columns: out, and the block gets the record)", name)
        end

        def respond_to_missing?(*)
          false
        end
      end

      CLASSES = {} # rubocop:disable Style/MutableConstant
      LOCK = Mutex.new
      private_constant :CLASSES, :LOCK, :Unnamed

      module_function

      # @param names [Array<Symbol>]
      # @param columns [Array<Array>] the values of each column
      # @param size [Integer] the number of rows
      # @return [Array<Struct>]
      def each(names, columns, size)
        row = class_of(names)
        Array.new(size) { |index| row.new(*columns.map { |column| column[index] }) }
      end

      # Classes are never removed: declarations have few lists of columns, and these do not change.
      def class_of(names)
        LOCK.synchronize { CLASSES[names] ||= (names.empty? ? Struct.new(:id) : Struct.new(*names)).include(Unnamed) }
      end
      private_class_method :class_of
    end
  end
end
