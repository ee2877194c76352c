# frozen_string_literal: true

module Castellan
  module Serialize
    # What a coder does not know (NaN, an infinite date, a year before Christ, text in a column of numbers of SQLite) the ORM's type does:
    # all values of that member are read by it, and the rows are written once more. Costs nothing where every value is plain.
    #
    #   SecondLook.at(row_set) { |tables| … }   # => what the block returned last
    module SecondLook
      module_function

      # @param row_set [Plan::RowSet]
      # @yieldparam tables [Array<Plan::RowSet::Table>] the same, or with that member computed
      # @raise [EncodingError] the first one, where the type says no more
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
