# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Makes a subquery of a dataset whose SELECT list is not of one table's columns, as in a Sequel model.
      #
      #   Subquery.of(DB[:posts].select(:id, Sequel.function(:upper, :title).as(:title)).order(:id)).sql
      #   # => "SELECT * FROM (SELECT …) AS posts ORDER BY id"
      #
      # The outer SELECT has the order, too; if need be, by columns that are added to the inner one. SQL in an order
      # (`Sequel.lit`) cannot be such a column, so then the dataset is read as it is.
      module Subquery
        module_function

        # @param dataset [Sequel::Dataset]
        # @return [Sequel::Dataset]
        def of(dataset)
          selected, order = dataset.opts.values_at(:select, :order).map { |list| list || [] }
          return dataset if selected.all? { |one| own_column?(dataset, one) } || order.any? { |term| sql?(expression(term)) }

          names = names(dataset, selected)
          added = {}
          order = order.map do |term|
            name = name(dataset, expression(term), names) || :"castellan_order#{added.size}".tap { |new| added[new] = expression(term) }
            outer(term, ::Sequel.identifier(name))
          end
          whole = dataset.select_append(*added.map { |name, one| ::Sequel.as(one, name) })
          whole.from_self(alias: dataset.first_source_alias).order(*order)
        end

        # @return [Boolean] whether the table of the dataset has the selected column
        def own_column?(dataset, selected)
          case selected
          when Symbol, ::Sequel::SQL::Identifier then !dataset.joined_dataset?
          when ::Sequel::SQL::ColumnAll, ::Sequel::SQL::QualifiedIdentifier
            dataset.literal(selected.table) == dataset.literal(dataset.first_source_alias)
          else false
          end
        end

        def sql?(expression)
          case expression
          when ::Sequel::LiteralString, ::Sequel::SQL::PlaceholderLiteralString, Integer then true
          else false
          end
        end

        # @return [Hash{String => Symbol, String, nil}] the names of the selected columns, by the SQL of expressions and names
        def names(dataset, selected)
          selected.each_with_object({}) do |one, names|
            expression, name = one.is_a?(::Sequel::SQL::AliasedExpression) ? [one.expression, one.alias] : [one, name_of(one)]
            [expression, name && ::Sequel.identifier(name)].compact.each { |known| names[dataset.literal(known)] ||= name }
          end
        end

        def name_of(selected)
          case selected
          when Symbol then selected
          when ::Sequel::SQL::Identifier then selected.value
          when ::Sequel::SQL::QualifiedIdentifier then selected.column
          end
        end

        # @return [Symbol, String, nil] the name of the column that is selected and has the value of the expression
        def name(dataset, expression, names)
          names.fetch(dataset.literal(expression)) do
            next unless expression.is_a?(::Sequel::SQL::QualifiedIdentifier)

            expression.column if names.key?(dataset.literal(::Sequel::SQL::ColumnAll.new(expression.table)))
          end
        end

        def expression(term) = term.is_a?(::Sequel::SQL::OrderedExpression) ? term.expression : term

        def outer(term, column)
          return column unless term.is_a?(::Sequel::SQL::OrderedExpression)

          ::Sequel::SQL::OrderedExpression.new(column, term.descending, nulls: term.nulls)
        end
        private_class_method :own_column?, :sql?, :names, :name_of, :name, :expression, :outer
      end
    end
  end
end
