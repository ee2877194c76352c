# frozen_string_literal: true

module Castellan
  module Serialize
    # Retries an encoding with the ORM's type for a member whose value the coder rejects (NaN, an infinite
    # date, a year BC, text in a numeric column of SQLite). Costs nothing if all values are plain.
    #
    #   SecondLook.at(row_set) { |tables| … }   # => the result of the last call of the block
    module SecondLook
      module_function

      # @param row_set [Plan::RowSet]
      # @yieldparam tables [Array<Plan::RowSet::Table>] the row set's tables, or copies with the member
      #   computed
      # @return [Object] the result of the block
      # @raise [EncodingError] if the ORM's type cannot convert the value either
      def at(row_set)
        tables = row_set.tables
        begin
          yield tables
        rescue EncodingError => error
          tables = retyped(tables, *error.place) or raise
          retry
        end
      end

      def retyped(tables, node = nil, member = nil)
        table = node && tables[node]
        return if table.nil? || table.retype.nil? || table.computed&.key?(member)

        texts = table.retype.call(member) or return
        tables.dup.tap { |all| all[node] = table.dup.tap { |one| one.computed = { **(table.computed || {}), member => texts } } }
      end
      private_class_method :retyped
    end
  end
end
