# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Wraps a union of the model's datasets, or custom SQL, as rows of the model's table.
      # Keeps the caller's order and returns each row once.
      #
      #   Named.of(Letter.where(id: 1).union(Letter.where(id: 5)), :letters, [:id])
      #   # => SELECT * FROM (SELECT * FROM (… UNION …) AS t1) AS letters
      #
      # An order in custom SQL or of a hidden table is preserved as a row number.
      module Named
        PLACE = :castellan_place
        TURN = :castellan_turn
        private_constant :PLACE, :TURN

        # Replaces the qualifier of columns of the caller's table with the model's table.
        class Requalified < ::Sequel::ASTTransformer
          def initialize(from, to)
            @from = from
            @to = to
            super()
          end

          private

          def v(term)
            return super unless term.is_a?(::Sequel::SQL::QualifiedIdentifier) && DatasetSql.table_name(term.table) == @from.to_s

            ::Sequel.qualify(@to, term.column)
          end
        end
        private_constant :Requalified

        class << self
          # @param dataset [Sequel::Dataset]
          # @param name [Symbol] the model's table
          # @param keys [Array<Symbol>, nil]
          # @return [Sequel::Dataset]
          def of(dataset, name, keys)
            order = order(dataset, name)
            placed = order == PLACE
            once = keys && repeats?(dataset)
            named = placed ? numbered(dataset, PLACE) : dataset
            named = numbered(named, TURN, partition: keys, order: (PLACE if placed)) if once
            named = named.from_self(alias: name)
            named = named.where(::Sequel.qualify(name, TURN) => 1) if once
            placed ? named.order(::Sequel.qualify(name, PLACE)) : named.order(*order)
          end

          private

          # @return [Array, Symbol, nil] order terms, or PLACE if only a row number preserves the order
          def order(dataset, name)
            return PLACE if dataset.opts[:sql]

            own = dataset.opts[:order]
            return own.map { |term| Requalified.new(dataset.first_source_alias, name).transform(term) } if own

            inner = dataset.first_source_table
            inner.opts[:order] && (plain?(inner) ? inner.opts[:order] : PLACE)
          end

          # Whether the outer query can order by the same columns.
          def plain?(inner)
            !inner.joined_dataset? && inner.opts[:select].nil? && inner.opts[:order].all? { |term| name?(term) }
          end

          def name?(term)
            term = term.expression if term.is_a?(::Sequel::SQL::OrderedExpression)
            term.is_a?(Symbol)
          end

          def numbered(dataset, name, **window)
            rows = dataset.from_self(alias: :castellan_rows)
            rows.select_all(:castellan_rows).select_append(::Sequel.function(:row_number).over(**window.compact).as(name))
          end

          def repeats?(dataset)
            return true if dataset.opts[:sql] || dataset.joined_dataset?
            return true if dataset.opts[:compounds]&.any? { |_, other, all| all || repeats?(other) }

            source = dataset.first_source_table
            source.is_a?(::Sequel::Dataset) && repeats?(source)
          end
        end
      end
    end
  end
end
