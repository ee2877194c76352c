# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # A caller's dataset as the statement that reads rows; a join to many never multiplies.
      #
      #   DatasetSql.select(DatasetSql.once(User.join(:assignments, user_id: :id), :id), "`users`.`id`")
      module DatasetSql
        WINDOW = %i[order limit offset].freeze
        PLACES = :castellan_places
        private_constant :WINDOW, :PLACES

        module_function

        # @return [String]
        def select(dataset, list)
          dataset.select(::Sequel.lit(list)).sql
        end

        # A dataset that may answer a row twice becomes `WHERE id IN (the dataset)`, in the dataset's order and with its limit.
        # @return [Sequel::Dataset]
        def once(dataset, key)
          dataset = expanded(dataset)
          return dataset unless key && multiplies?(dataset)

          among(dataset, key, dataset.db.from(dataset.first_source))
        end

        # A name that the dataset's SELECT gives is not there when other columns are read: what stands behind it is.
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

        # The same for whoever loads records: as the model's rows.
        # @return [Sequel::Dataset]
        def records(dataset, key)
          return dataset unless key && multiplies?(dataset)

          among(expanded(dataset), key, dataset.respond_to?(:model) ? dataset.model.dataset : dataset.db.from(dataset.first_source))
        end

        # The rows that its limit leaves, for whoever wants them in another order; what else the dataset says holds.
        # @return [Sequel::Dataset]
        def chosen(dataset, key)
          key or raise DeclarationError, "#{dataset.first_source_alias}: a dataset with LIMIT needs a primary key (a view has none)"

          found(dataset.unordered.unlimited, ids(dataset, key), once(dataset, key))
        end

        # @param all [Sequel::Dataset] of the same rows, without a condition
        # @return [Sequel::Dataset] of the rows that are in the dataset, in its order and with its limit
        def among(dataset, key, all)
          ids = ids(dataset, key)
          return found(all, ids, bare(dataset)).clone(dataset.opts.slice(*WINDOW)) unless joined_order?(dataset)

          names = ids.each_with_index.to_h { |id, index| [:"id#{index}", id] }
          placed = all.join(places(dataset, names).as(PLACES), names, qualify: :symbol)
          placed.select_all(dataset.first_source_alias).order(::Sequel.qualify(PLACES, :place)).clone(dataset.opts.slice(:limit, :offset))
        end

        # @return [Array<Sequel::SQL::QualifiedIdentifier>] the columns of the primary key
        def ids(dataset, key)
          Array(key).map { |column| ::Sequel.qualify(dataset.first_source_alias, column) }
        end

        def found(all, ids, chosen)
          all.where((ids.size == 1 ? ids.first : ids) => chosen.select(*ids))
        end

        # Where each row comes first in the order that joined tables give.
        def places(dataset, names)
          place = ::Sequel.function(:row_number).over(order: dataset.opts[:order])
          ids = bare(dataset).select(*names.map { |name, id| id.as(name) }, place.as(:place))
          dataset.db.from(ids.as(:castellan_placed)).group(*names.keys).select(*names.keys, ::Sequel.function(:min, :place).as(:place))
        end

        # What is not surely a column of the rows' own table counts as another's: that costs a window function, never a wrong order.
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
