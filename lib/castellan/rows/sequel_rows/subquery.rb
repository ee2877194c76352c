# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Makes a subquery of a dataset whose SELECT list is not of one table's columns, as in a Sequel model.
      #
      #   Subquery.of(DB[:posts].select(:id, Sequel.function(:upper, :title).as(:title))).sql
      #   # => "SELECT * FROM (SELECT id, upper(title) AS title FROM posts) AS posts"
      #
      # An order may name columns that the list lacks, so the outer SELECT has the order of the rows' numbers.
      module Subquery
        ORDER = :castellan_order
        private_constant :ORDER

        module_function

        # @param dataset [Sequel::Dataset]
        # @return [Sequel::Dataset]
        def of(dataset)
          return dataset if (dataset.opts[:select] || []).all? { |one| own_column?(dataset, one) }

          name = dataset.first_source_alias
          whole = dataset.from_self(alias: name)
          return whole unless dataset.opts[:order]

          whole.select_append(::Sequel.function(:row_number).over.as(ORDER)).from_self(alias: name).order(ORDER)
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
        private_class_method :own_column?
      end
    end
  end
end
