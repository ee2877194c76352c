# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Builds the SELECT that reads a dataset's rows, each once.
      #
      #   DatasetSql.select(DatasetSql.once(User.join(:assignments, user_id: :id), [:id]), "`users`.`id`")
      module DatasetSql
        WINDOW = %i[order limit offset].freeze
        private_constant :WINDOW

        module_function

        # @param joins [String, nil] see {JoinedPaths}
        # @return [String] SQL
        def select(dataset, list, joins = nil)
          dataset = dataset.clone(from: [::Sequel.lit("#{dataset.literal(dataset.opts[:from].first)} #{joins}")]) if joins
          dataset.select(::Sequel.lit(list)).sql
        end

        # @param own [Hash] the options of the model's dataset
        # @param key [Array<Symbol>, nil] the primary key's columns
        # @return [String, nil] why the dataset's rows cannot be selected in its order, each once
        def reason(dataset, own, key)
          opts = dataset.opts
          if opts[:from] != own[:from] then "its rows come from a union, a subquery or custom SQL"
          elsif expressions?(dataset, own) then "it selects something else than columns"
          elsif %i[group having].any? { |name| opts[name] && opts[name] != own[name] } then "it has GROUP BY or HAVING"
          elsif key && repeats?(dataset) && !own_order?(dataset)
            "it joins tables, and its order is not made of qualified columns of its own table alone, as in order(Sequel[:users][:name])"
          end
        end

        # @return [Boolean] whether the dataset selects anything but columns
        def expressions?(dataset, own)
          selected = dataset.opts[:select]
          !(selected.nil? || selected == own[:select] || selected.all? { |one| column?(one) })
        end

        # @return [Boolean] whether a row may be returned several times
        def repeats?(dataset)
          dataset.joined_dataset? || !dataset.opts[:distinct].nil?
        end

        # Turns a dataset with duplicate rows into `WHERE id IN (dataset)`, with its order and limit.
        # @return [Sequel::Dataset]
        def once(dataset, key)
          return dataset unless key && repeats?(dataset)

          ids = key.map { |column| ::Sequel.qualify(dataset.first_source_alias, column) }
          chosen = dataset.unordered.unlimited.clone(distinct: nil, lock: nil).select(*ids)
          all = dataset.db.from(dataset.first_source).where((ids.one? ? ids.first : ids) => chosen)
          all.clone(dataset.opts.slice(*WINDOW))
        end

        def column?(selected)
          case selected
          when Symbol, ::Sequel::SQL::ColumnAll, ::Sequel::SQL::Identifier, ::Sequel::SQL::QualifiedIdentifier then true
          else false
          end
        end

        def own_order?(dataset)
          own = dataset.first_source_alias.to_s
          Array(dataset.opts[:order]).all? do |term|
            term = term.expression if term.is_a?(::Sequel::SQL::OrderedExpression)
            term.is_a?(::Sequel::SQL::QualifiedIdentifier) && table_name(term.table) == own
          end
        end

        def table_name(table)
          (table.is_a?(::Sequel::SQL::Identifier) ? table.value : table).to_s
        end
        private_class_method :column?, :own_order?, :table_name
      end
    end
  end
end
