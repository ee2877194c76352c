# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Builds the SELECT that reads a dataset's rows, each once.
      #
      #   DatasetSql.select(DatasetSql.once(User.join(:assignments, user_id: :id), :id), "`users`.`id`")
      module DatasetSql
        WINDOW = %i[order limit offset].freeze
        PLACES = :castellan_places
        private_constant :WINDOW, :PLACES

        module_function

        # @return [String] SQL
        def select(dataset, list)
          dataset.select(::Sequel.lit(list)).sql
        end

        # Turns a dataset with duplicate rows into `WHERE id IN (dataset)`, with its order and limit.
        # @return [Sequel::Dataset]
        def once(dataset, key)
          dataset = expanded(dataset)
          return dataset unless key && multiplies?(dataset)

          among(dataset, key, dataset.db.from(dataset.first_source))
        end

        # Replaces SELECT aliases in ORDER BY with their expressions; the rows' SELECT lacks them.
        def expanded(dataset)
          selected = Array(dataset.opts[:select]).grep(::Sequel::SQL::AliasedExpression).to_h { |one| [one.alias.to_sym, one.expression] }
          return dataset if selected.empty? || dataset.opts[:order].nil?

          dataset.order(*dataset.opts[:order].map { |term| behind(term, selected) })
        end

        def behind(term, selected)
          return selected.fetch(term, term) if term.is_a?(Symbol)
          return term unless term.is_a?(::Sequel::SQL::OrderedExpression)

          ::Sequel::SQL::OrderedExpression.new(behind(term.expression, selected), term.descending, nulls: term.nulls)
        end

        def bare(dataset)
          dataset.unordered.unlimited.clone(distinct: nil)
        end

        # Like {once}, for loading records through the model.
        # @return [Sequel::Dataset]
        def records(dataset, key)
          return dataset unless key && multiplies?(dataset)

          among(expanded(dataset), key, dataset.respond_to?(:model) ? dataset.model.dataset : dataset.db.from(dataset.first_source))
        end

        # Wraps a limited dataset so that its rows can be ordered again; its other options stay.
        # @return [Sequel::Dataset]
        def chosen(dataset, key)
          key or raise DeclarationError, "#{dataset.first_source_alias}: a dataset with LIMIT needs a primary key (a view has none)"

          found(dataset.unordered.unlimited, ids(dataset, key), once(dataset, key))
        end

        # @param all [Sequel::Dataset] the same table without conditions
        # @return [Sequel::Dataset] the dataset's rows, each once, in its order and with its limit
        def among(dataset, key, all)
          ids = ids(dataset, key)
          return found(all, ids, bare(dataset)).clone(dataset.opts.slice(*WINDOW)) unless joined_order?(dataset)

          names = ids.each_with_index.to_h { |id, index| [:"id#{index}", id] }
          placed = all.join(places(dataset, names).as(PLACES), names, qualify: :symbol)
          placed.select_all(dataset.first_source_alias).order(::Sequel.qualify(PLACES, :place)).clone(dataset.opts.slice(:limit, :offset))
        end

        # @return [Array<Sequel::SQL::QualifiedIdentifier>] the primary key's columns
        def ids(dataset, key)
          Array(key).map { |column| ::Sequel.qualify(dataset.first_source_alias, column) }
        end

        def found(all, ids, chosen)
          all.where((ids.size == 1 ? ids.first : ids) => chosen.select(*ids))
        end

        # The first position of each row in the order of the joined tables.
        def places(dataset, names)
          place = ::Sequel.function(:row_number).over(order: dataset.opts[:order])
          ids = bare(dataset).select(*names.map { |name, id| id.as(name) }, place.as(:place))
          dataset.db.from(ids.as(:castellan_placed)).group(*names.keys).select(*names.keys, ::Sequel.function(:min, :place).as(:place))
        end

        # An order term that is not clearly a column of the rows' own table counts as joined: that costs a
        # window function, but the order is right.
        def joined_order?(dataset)
          own = dataset.first_source_alias.to_s
          Array(dataset.opts[:order]).any? do |term|
            term = term.expression if term.is_a?(::Sequel::SQL::OrderedExpression)
            !(term.is_a?(::Sequel::SQL::QualifiedIdentifier) && table_name(term.table) == own)
          end
        end

        def table_name(table)
          (table.is_a?(::Sequel::SQL::Identifier) ? table.value : table).to_s
        end

        def multiplies?(dataset)
          dataset.joined_dataset? || dataset.opts[:distinct] || dataset.opts[:group]
        end
      end
    end
  end
end
