# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Narrows, orders, pages and counts the caller's dataset, and returns its SQL.
      #
      #   rows = SequelRows.for(MailLog)
      #   rows.page(rows.order(MailLog.where(in_or_out: "in"), [%i[number desc]]), limit: 20, offset: 40)
      #   rows.select_sql(MailLog.limit(2), "id")   # => SELECT id FROM `mail_logs` LIMIT 2
      module Scopes
        # @param object [Class, Sequel::Dataset]
        # @return [Sequel::Dataset] a union or custom SQL of the model is wrapped under the name of its table
        def scope(object = model)
          return object.dataset if object.is_a?(Class)
          return object unless object.is_a?(::Sequel::Dataset) && elsewhere?(object)

          Named.of(object, @dataset.first_source_alias, keys)
        end

        # @return [Boolean] whether the object can be passed to {#fetch}
        # @raise [ConfigurationError] for a dataset with a server: related rows would come from another
        def scope?(object)
          return false unless object.is_a?(::Sequel::Dataset) && object.opts[:from] && !object.opts[:sql] &&
                              object.first_source_alias == @dataset.first_source_alias
          return true if [nil, :default, :read_only].include?(object.opts[:server])

          raise ConfigurationError, "a dataset of server #{object.opts[:server].inspect} cannot be read as rows: write the document " \
                                    "inside DB.with_server(#{object.opts[:server].inspect}) { … } (Sequel's extension server_block)"
        end

        # @return [Boolean] whether the scope aliases something as a column, which requires records
        def renames?(scope)
          selected = narrowed(scope).opts[:select]
          return false if selected.nil? || selected == @dataset.opts[:select]

          selected.any? { |one| one.is_a?(::Sequel::SQL::AliasedExpression) && columns.include?(one.alias.to_s.to_sym) }
        end

        # @param ids [Array<String, Integer>]
        # @return [Sequel::Dataset, ChosenIds] the latter if the scope adds no conditions to the model
        def by_ids(scope, ids, column = primary_key)
          scope = limited(scope)
          return by_several(scope, ids, column) if column.is_a?(Array)
          return scope.where(qualify(column) => possible(ids, column)) unless integer?(column)

          ids = Ids.integers(ids)
          return scope.where(qualify(column) => ids) unless whole?(scope) && kept_ids?(ids, column)

          ChosenIds.new(scope, ids, column) { |all, chosen| all.where(qualify(column) => chosen) }
        end

        # @param order [Array<(Symbol, Symbol)>] columns with :asc or :desc; if empty, the scope's order
        # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
        # @return [Sequel::Dataset] ordered by the primary key last, so that pages never overlap
        def order(scope, order, key: nil)
          scope = narrowed(scope)
          scope = limited(scope) if order.any?
          terms = order.map { |column, direction| ::Sequel.public_send(direction, qualify(column)) }
          terms.concat(((keys || Array(key)) - order.map { |column, _| column.to_sym }).map { |key| qualify(key) })
          return terms.empty? ? scope : scope.order_append(*terms) if order.empty?

          scope.order(*terms)
        end

        # @return [Sequel::Dataset] a page within the scope's own limit
        def page(scope, limit:, offset:)
          scope = narrowed(scope)
          limit, offset = window_within(scope.opts[:limit], scope.opts[:offset], limit, offset)
          return scope.where(false) if limit&.zero?

          scope = scope.limit(limit) if limit
          scope = scope.offset(offset) if offset.positive?
          scope
        end

        # @return [Integer] the number of distinct rows, within the scope's own limit
        def count(scope)
          DatasetSql.once(narrowed(scope), keys).clone(lock: nil).count
        end

        # @param plan [Plan::FetchPlan, nil] adds the scopes of its associations and the server
        # @return [String] the exact SQL of the scope in this request, for use in a cache key
        def scope_key(scope, plan = nil)
          sql = DatasetSql.once(narrowed(scope), keys).sql
          plan ? [sql, *tables_read(plan).scopes, server].join("\n") : sql
        end

        # @return [String] SELECT of that list for the scope, each row once
        def select_sql(scope, list, _joins = nil)
          DatasetSql.select(DatasetSql.once(narrowed(scope), keys), list)
        end

        # @return [Array<Symbol>, nil] the primary key's columns
        def keys
          keys = Array(model? ? model.primary_key : primary_key)
          keys if keys.any?
        end

        # @param sql [String] an SQL condition
        # @return [Sequel::Dataset]
        def where_sql(scope, sql)
          scope.where(::Sequel.lit(sql))
        end

        # @return [Boolean] whether the dataset adds only conditions and an order to the model
        def plain?(dataset)
          own = scope.opts
          dataset.opts.keys.union(own.keys).all? { |key| %i[where order].include?(key) || dataset.opts[key] == own[key] }
        end

        # @param columns [Array<Symbol>]
        # @return [String] SELECT of these columns for exactly the dataset's rows, for use in `IN (…)`
        def subquery_sql(dataset, columns)
          dataset = dataset.clone(lock: nil)
          limited, distinct, selected = dataset.opts.values_at(:limit, :distinct, :select)
          limited ||= dataset.opts[:offset]
          if (selected && selected != @dataset.opts[:select]) || (distinct&.empty? && limited)
            list = columns.map { |column| "castellan_scope.#{quote(column)}" }.join(", ")
            return "SELECT #{list} FROM (#{dataset.sql}) AS castellan_scope"
          end

          dataset = dataset.unordered unless limited || distinct
          DatasetSql.select(dataset, columns.map { |column| qualified(column) }.join(", "))
        end

        # @return [Boolean] false, because paths are read with subqueries
        def joinable?(_scope)
          false
        end

        private

        # The server of reads; `with_server` changes it for a block.
        def server
          pool = database.pool
          pool.send(:pick_server, :read_only) if pool.respond_to?(:pick_server, true)
        end

        # Drops ids that are no date or time, because PostgreSQL would refuse the comparison.
        def possible(ids, column)
          type = type(column)
          return ids unless %i[date datetime time].include?(type)

          ids.select do |id|
            database.typecast_value(type, id)
          rescue ::Sequel::InvalidValue
            false
          end
        end

        # Keeps a SELECT with aliases or expressions, and with GROUP BY, DISTINCT or UNION.
        def widened(dataset)
          selected = dataset.opts[:select]
          return dataset unless selected&.all? { |one| one.is_a?(Symbol) || one.is_a?(::Sequel::SQL::QualifiedIdentifier) }
          return dataset if dataset.opts.values_at(:group, :distinct, :compounds).any?

          dataset.select_all(dataset.first_source_alias)
        end

        def elsewhere?(dataset)
          return false unless model.is_a?(Class) && dataset.respond_to?(:model) && dataset.model == model
          return true if dataset.opts[:sql] || dataset.opts[:compounds]

          dataset.opts[:join].nil? && dataset.opts[:from]&.one? && dataset.first_source_table.is_a?(::Sequel::Dataset) &&
            dataset.first_source_alias != @dataset.first_source_alias
        end

        def by_several(dataset, ids, columns)
          values = RecordIds.divided(ids, columns, self)
          return dataset.where(qualify(columns.first) => values.flatten(1)) if columns.one?

          dataset.where(columns.map { |column| qualify(column) } => values)
        end

        # Conditions on a dataset with a limit apply to the rows within the limit.
        def limited(scope)
          limited = scope.is_a?(::Sequel::Dataset) && (scope.opts[:limit] || scope.opts[:offset])
          limited ? DatasetSql.chosen(scope, keys) : scope
        end

        def kept_ids?(ids, column)
          dialect.name == :sqlite || Ids.of_type?(ids, database_type(column))
        end

        def whole?(scope)
          dialect.name != :other && constant_by_ids? && scope.equal?(model.dataset)
        end
      end
    end
  end
end
