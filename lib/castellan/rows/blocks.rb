# frozen_string_literal: true

module Castellan
  module Rows
    # Binds a declaration's block to the viewer, and makes the rows that it receives.
    #
    #   Blocks.bound(->(row, viewer) { viewer.sees?(row) }, viewer).call(row)
    #   Blocks.bound(:title.to_proc, viewer).call(record)   # one argument, despite its parameters
    #   Blocks.rows(%i[first_name last_name], [%w[Ada Alan], %w[Lovelace Turing]], 2)
    #   # => [#<struct first_name="Ada", last_name="Lovelace">, …]
    module Blocks
      # Raises an error that names the column if a block reads one that its declaration does not list.
      module Unnamed
        def method_missing(name, *)
          return super if name.end_with?("=", "?", "!") || name.start_with?("to_")

          raise NoMethodError.new("the block reads #{name}, which it does not name: write columns: #{[*members, name].inspect} (or leave " \
                                  "columns: out, and the block gets the record)", name)
        end

        def respond_to_missing?(*) = false
      end

      SYMBOL = [[:req], [:rest]].freeze
      ROWS = {} # rubocop:disable Style/MutableConstant
      LOCK = Mutex.new
      private_constant :SYMBOL, :ROWS, :LOCK, :Unnamed

      module_function

      def takes_viewer?(block)
        parameters = block.parameters
        parameters != SYMBOL && parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
      end

      # @return [Proc] a block of one argument, so that the parameters are checked once and not for each row
      def bound(block, viewer) = takes_viewer?(block) ? ->(row) { block.call(row, viewer) } : block

      # @param names [Array<Symbol>] the columns that the declaration lists
      def rows(names, columns, size)
        row = row_class(names)
        Array.new(size) { |index| row.new(*columns.map { |column| column[index] }) }
      end

      # Classes are never removed: declarations have few lists of columns, and these do not change.
      def row_class(names)
        LOCK.synchronize { ROWS[names] ||= (names.empty? ? Struct.new(:id) : Struct.new(*names)).include(Unnamed) }
      end
      private_class_method :row_class
    end
  end
end
