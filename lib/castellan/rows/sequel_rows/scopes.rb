# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Narrows, orders, pages, counts and loads the caller's dataset, and returns its SQL.
      #
      #   rows = SequelRows.for(MailLog)
      #   rows.page(rows.order(MailLog.where(in_or_out: "in"), [%i[number desc]]), limit: 20, offset: 40)
      #   rows.select_sql(MailLog.limit(2), "id")   # => SELECT id FROM `mail_logs` LIMIT 2
      module Scopes
        # @param object [Class, Sequel::Dataset]
        # @return [Sequel::Dataset] custom SQL and a compound (a union without from_self) become a subquery. A
        #   database keeps the order of a subquery if the statement adds none
        def scope(object = model)
          return object.dataset if object.is_a?(Class)
          return object unless object.is_a?(::Sequel::Dataset) && (object.opts[:sql] || object.opts[:compounds])

          object.from_self(alias: @dataset.first_source_alias)
        end

        # @return [Boolean] whether the object can be passed to {#fetch}
        # @raise [ConfigurationError] for a dataset with a server: related rows would come from another
        def scope?(object)
          return false unless object.is_a?(::Sequel::Dataset) && object.opts[:from] && !object.opts[:sql] && own?(object)
          return true if [nil, :default, :read_only].include?(object.opts[:server])

          raise ConfigurationError, "a dataset of server #{object.opts[:server].inspect} cannot be read as rows: write the document " \
                                    "inside DB.with_server(#{object.opts[:server].inspect}) { … } (Sequel's extension server_block)"
        end

        # @return [String, nil] why the scope's records must be loaded; nil if rows can be selected
        def scope_reason(scope)
          DatasetSql.reason(scope, @dataset.opts, keys) unless scope.is_a?(Ids::Chosen)
        end

        # Loads the records of a scope (of a dataset: hashes), each once, in one statement through the caller's
        # dataset. A limit counts records, not the rows of a join.
        # @param whole [Boolean] select all columns, unless the scope selects expressions
        # @return [Array<Sequel::Model, Hash>]
        def load(scope, whole: false)
          dataset = narrowed(scope)
          expressions = DatasetSql.expressions?(dataset, @dataset.opts)
          repeats = keys && (DatasetSql.repeats?(dataset) || subquery?(dataset))
          plain = !expressions && dataset.opts[:group].nil?
          dataset = dataset.select_all(dataset.first_source_alias) if plain && (repeats || (whole && dataset.opts[:select]))
          dataset = at_keys(dataset) if plain && repeats && limited?(dataset)
          dataset.all.uniq
        end

        # @param ids [Array<String, Integer>]
        # @return [Sequel::Dataset, Ids::Chosen] the latter if the scope adds no conditions to the model
        def by_ids(scope, ids, column = primary_key)
          scope = limited(scope)
          return by_several(scope, ids, column) if column.is_a?(Array)
          return scope.where(qualify(column, scope) => possible(ids, column)) unless integer?(column)

          ids = Ids.integers(ids)
          return scope.where(qualify(column, scope) => ids) unless whole?(scope) && kept_ids?(ids, column)

          Ids::Chosen.new(scope, ids, column) { |all, chosen| all.where(qualify(column) => chosen) }
        end

        # @param order [Array<(Symbol, Symbol), (ComparedColumn, Symbol)>] columns with :asc or :desc; if empty, the scope's order
        # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
        # @return [Sequel::Dataset] ordered by the primary key last, so that pages never overlap; a subquery
        #   keeps its own order
        def order(scope, order, key: nil)
          scope = limited(scope) if order.any?
          terms = order.map { |column, direction| ::Sequel.public_send(direction, ordered_by(column, scope)) }
          terms.concat(((keys || Array(key)) - order.map(&:first)).map { |key| qualify(key, scope) })
          return scope.order(*terms) if order.any?

          terms.empty? || (subquery?(scope) && scope.opts[:order].nil?) ? scope : scope.order_append(*terms)
        end

        # @return [Sequel::Dataset] a page within the scope's own limit
        def page(scope, limit:, offset:)
          limit, offset = window_within(scope.opts[:limit], scope.opts[:offset], limit, offset) if limited?(scope)
          return scope.where(false) if limit&.zero?

          scope = scope.limit(limit) if limit
          scope = scope.offset(offset) if offset&.positive?
          scope
        end

        # @return [Integer] the number of distinct rows, within the scope's own limit
        def count(scope)
          dataset = narrowed(scope)
          all = dataset.unordered.unlimited.clone(lock: nil)
          count = scope_reason(all) && keys ? distinct_keys(all).count : DatasetSql.once(all, keys).count
          within_window(*dataset.opts.values_at(:limit, :offset), count)
        end

        # @param plan [Plan::FetchPlan, nil] adds the scopes of its associations and the server
        # @return [String] the exact SQL of the scope in this request, for use in a cache key
        def scope_key(scope, plan = nil)
          dataset = narrowed(scope)
          sql = (scope_reason(dataset) ? dataset : DatasetSql.once(dataset, keys)).sql
          plan ? [sql, *tables_read(plan).scopes, server].join("\n") : sql
        end

        # @return [String] SELECT of that list for the scope, each row once; only without a {#scope_reason}
        # @param joins [String, nil] see {JoinedPaths}
        def select_sql(scope, list, joins = nil)
          DatasetSql.select(DatasetSql.once(scope, keys), list, joins)
        end

        # @return [Array<Symbol>, nil] the primary key's columns
        attr_reader :keys

        # @param sql [String] an SQL condition on the model's table
        # @return [Sequel::Dataset]
        def where_sql(scope, sql)
          return scope.where(::Sequel.lit(sql)) unless keys && subquery?(scope)

          where_keys(scope, @dataset.where(::Sequel.lit(sql)).select(*keys.map { |key| qualify(key) }))
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
          list = columns.map { |column| "castellan_scope.#{quote(column)}" }.join(", ")
          return "SELECT #{list} FROM (#{dataset.sql}) AS castellan_scope" if apart?(dataset)

          dataset = dataset.unordered unless limited?(dataset) || dataset.opts[:distinct]
          DatasetSql.select(dataset, columns.map { |column| qualified(column) }.join(", "))
        end

        # (see ActiveRecordRows::Scopes#joinable?)
        def joinable?(scope)
          opts = scope.opts
          !opts[:order].nil? && opts[:lock].nil? && opts[:from].size == 1
        end

        # (see ActiveRecordRows::Scopes#extent)
        def extent(scope)
          opts = scope.opts
          return opts[:limit].to_i if opts[:limit].is_a?(Integer)
          return 0 if opts.values_at(:limit, :distinct, :lock).any?

          :all if opts.values_at(:where, :join, :offset).none?
        end

        # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by its key
        def key_order(scope)
          return if limited?(scope)

          order = scope.opts[:order] || []
          return :asc if order.empty?

          direction(order.first) if order.size == 1
        end

        # @return [Sequel::Dataset] the rows after this key
        def after(scope, id, direction)
          key = qualify(primary_key)
          scope.where(direction == :asc ? key > id : key < id)
        end

        # @return [Sequel::Dataset]
        def unlimited(scope)
          scope.unlimited
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

        # Whether the dataset selects rows of the model, perhaps as a subquery.
        def own?(dataset)
          return true if dataset.first_source_alias == @dataset.first_source_alias

          model? && subquery?(dataset) && dataset.respond_to?(:model) && dataset.model <= model
        end

        def subquery?(dataset)
          dataset.opts[:from] != @dataset.opts[:from]
        end

        def apart?(dataset)
          subquery?(dataset) || DatasetSql.expressions?(dataset, @dataset.opts) || (dataset.opts[:distinct]&.empty? && limited?(dataset)) ||
            (dataset.opts[:select] && dataset.opts[:select] != @dataset.opts[:select]) || false
        end

        def ordered_by(column, dataset)
          return qualify(column, dataset) unless column.is_a?(ComparedColumn)

          ::Sequel.lit(column.sql { |own| dataset.literal(qualify(own, dataset)) })
        end

        def qualify(column, dataset = @dataset)
          ::Sequel.qualify(dataset.first_source_alias, column)
        end

        def by_several(dataset, ids, columns)
          values = Ids.divided(ids, columns, self)
          return dataset.where(qualify(columns.first, dataset) => values.flatten(1)) if columns.one?

          dataset.where(columns.map { |column| qualify(column, dataset) } => values)
        end

        # Conditions on a dataset with a limit apply to the rows within the limit.
        def limited(scope)
          return scope unless scope.is_a?(::Sequel::Dataset) && limited?(scope)

          keys or raise DeclarationError, "#{scope.first_source_alias}: a dataset with LIMIT needs a primary key (a view has none)"
          where_keys(scope.unordered.unlimited, distinct_keys(scope_reason(scope) ? scope : DatasetSql.once(scope, keys)))
        end

        def limited?(dataset)
          !dataset.opts[:limit].nil? || !dataset.opts[:offset].nil?
        end

        def distinct_keys(dataset)
          columns = keys.map { |key| ::Sequel.qualify(:castellan_scope, key) }
          dataset.clone(lock: nil).from_self(alias: :castellan_scope).select(*columns).distinct
        end

        # @param found [Sequel::Dataset, Array] keys
        def where_keys(dataset, found)
          columns = keys.map { |key| qualify(key, dataset) }
          dataset.where((columns.one? ? columns.first : columns) => found)
        end

        # The dataset without its limit, for the keys that are within it.
        def at_keys(dataset)
          limit, offset = dataset.opts.values_at(:limit, :offset)
          all = dataset.unlimited.clone(distinct: nil)
          columns = keys.map { |key| qualify(key, dataset) }
          found = all.naked.select(*columns).map(keys.one? ? keys.first : keys).uniq.drop(offset.to_i)
          where_keys(all, limit ? found.first(limit) : found)
        end

        def direction(term)
          return key?(term) ? :asc : nil unless term.is_a?(::Sequel::SQL::OrderedExpression)

          (term.descending ? :desc : :asc) if key?(term.expression) && term.nulls.nil?
        end

        def key?(expression)
          return expression == primary_key unless expression.is_a?(::Sequel::SQL::QualifiedIdentifier)

          expression.column.to_s == primary_key.to_s && expression.table.to_s == @dataset.first_source_alias.to_s
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
