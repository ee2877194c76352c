# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Narrows, orders, pages, counts and loads the caller's dataset, and returns its SQL.
      #
      #   scopes = SequelRows.for(MailLog).scopes
      #   scopes.page(scopes.order(MailLog.where(in_or_out: "in"), [%i[number desc]]), limit: 20, offset: 40)
      #   scopes.select_sql(MailLog.limit(2), "id")   # => SELECT id FROM `mail_logs` LIMIT 2
      class Scopes < Rows::Scopes
        USUAL = %i[from model row_proc where order limit offset].freeze # options that never change which columns are read
        private_constant :USUAL

        # @return [Array<Symbol>, nil] the primary key's columns
        attr_reader :keys

        # @param dataset [Sequel::Dataset] all rows, as hashes
        def initialize(adapter, dataset)
          super(adapter)
          @dataset = dataset
          @own = dataset.opts[:from] if (dataset.opts.keys - USUAL).empty?
          @keys = Array(model? ? model.primary_key : primary_key)
          @keys = nil if @keys.empty?
          freeze
        end

        # @param object [Class, Sequel::Dataset]
        # @return [Sequel::Dataset] custom SQL and a compound (a union without from_self) become a subquery. A
        #   database keeps the order of a subquery if the statement adds none
        def from(object)
          return object.dataset if object.is_a?(Class)
          return object unless object.is_a?(::Sequel::Dataset) && (object.opts[:sql] || object.opts[:compounds])

          object.from_self(alias: @dataset.first_source_alias)
        end

        # @return [Sequel::Dataset] all rows
        def all
          from(model)
        end

        # @return [Boolean] whether the object can be passed to {Adapter#fetch}
        # @raise [ConfigurationError] for a dataset with a server: related rows would come from another
        def own?(object)
          return false unless object.is_a?(::Sequel::Dataset) && object.opts[:from] && !object.opts[:sql] && rows_of_model?(object)
          return true if [nil, :default, :read_only].include?(object.opts[:server])

          raise ConfigurationError, "a dataset of server #{object.opts[:server].inspect} cannot be read as rows: write the document " \
                                    "inside DB.with_server(#{object.opts[:server].inspect}) { … } (Sequel's extension server_block)"
        end

        # (see ActiveRecordRows::Scopes#reason)
        def reason(scope)
          return if scope.is_a?(Ids::Chosen)

          @unreadable || (DatasetSql.reason(scope, @dataset.opts, keys) unless usual?(scope))
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

        # (see ActiveRecordRows::Scopes#page)
        def page(scope, limit:, offset:)
          own = window(scope)
          limit, offset = window_within(*own, limit, offset) if own.any?
          return scope.where(false) if limit&.zero?

          scope = scope.limit(limit) if limit
          offset&.positive? ? scope.offset(offset) : scope
        end

        # (see ActiveRecordRows::Scopes#count_sql)
        def count_sql(scope)
          all = narrowed(scope).unordered.unlimited.clone(lock: nil)
          DatasetSql.select(DatasetSql.once(all, keys), "COUNT(*)") unless reason(all) || (keys.nil? && DatasetSql.repeats?(all))
        end

        # (see ActiveRecordRows::Scopes#key)
        def key(scope, plan = nil)
          dataset = narrowed(scope)
          sql = (reason(dataset) ? dataset : DatasetSql.once(dataset, keys)).sql
          plan ? [sql, *tables_read(plan).scopes, *surroundings].join("\n") : sql
        end

        # (see Rows::Scopes#bound)
        def bound(scope)
          ScopeIdentity.of(narrowed(scope), @dataset)
        end

        # (see ActiveRecordRows::Scopes#select_sql)
        def select_sql(scope, list, joins = nil)
          DatasetSql.select(DatasetSql.once(scope, keys), list, joins)
        end

        # (see ActiveRecordRows::Scopes#where_sql)
        def where_sql(scope, sql)
          return scope.where(::Sequel.lit(sql)) unless keys && subquery?(scope)

          where_keys(scope, @dataset.where(::Sequel.lit(sql)).select(*keys.map { |key| qualify(key) }))
        end

        # (see ActiveRecordRows::Scopes#plain?)
        def plain?(dataset)
          own = all.opts
          dataset.opts.keys.union(own.keys).all? { |key| %i[where order].include?(key) || dataset.opts[key] == own[key] }
        end

        # (see ActiveRecordRows::Scopes#subquery_sql)
        def subquery_sql(dataset, columns)
          dataset = dataset.clone(lock: nil)
          list = columns.map { |column| "castellan_scope.#{types.quote(column)}" }.join(", ")
          return "SELECT #{list} FROM (#{dataset.sql}) AS castellan_scope" if apart?(dataset)

          dataset = dataset.unordered unless limited?(dataset) || dataset.opts[:distinct]
          DatasetSql.select(dataset, columns.map { |column| types.qualified(column) }.join(", "))
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

        # @return [Sequel::Dataset] the rows after this key
        def after(scope, id, direction)
          key = qualify(primary_key)
          scope.where(direction == :asc ? key > id : key < id)
        end

        # @return [Sequel::Dataset]
        def unlimited(scope)
          scope.unlimited
        end

        # (see ActiveRecordRows::Scopes#select_by_ids_sql)
        def select_by_ids_sql(list, column, joins = nil, condition = nil)
          condition = among_ids(column, condition)
          return "SELECT #{list} FROM #{[types.table, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

          DatasetSql.select(@dataset.where(::Sequel.lit(condition)), list, joins)
        end

        # @return [Boolean] whether {#select_by_ids_sql} is constant; a filtered model's is not
        def constant_by_ids?
          model? && model.simple_table ? true : false
        end

        # @return [Boolean] false: polymorphic associations, which need it, are read through models
        def hide_rows?
          false
        end

        private

        alias everything all

        def usual?(dataset)
          @own && dataset.opts[:from] == @own && (dataset.opts.keys - USUAL).empty?
        end

        # Unlike `to_a`, it loads what the dataset loads eagerly.
        def records(dataset)
          dataset.all
        end

        def with_values(dataset, column, values)
          dataset.where(qualify(column, dataset) => values)
        end

        def model?
          model.is_a?(Class)
        end

        def database = @dataset.db

        # The server of reads; `with_server` changes it for a block.
        def surroundings
          pool = database.pool
          pool.respond_to?(:pick_server, true) ? [pool.send(:pick_server, :read_only)] : [nil]
        end

        # Drops ids that are no date or time, because PostgreSQL would refuse the comparison.
        def possible(ids, column)
          type = types.type(column)
          return ids unless %i[date datetime time].include?(type)

          ids.select do |id|
            database.typecast_value(type, id)
          rescue ::Sequel::InvalidValue
            false
          end
        end

        # Whether the dataset selects rows of the model, perhaps as a subquery. A subquery of no model returns hashes.
        def rows_of_model?(dataset)
          return dataset.first_source_alias == @dataset.first_source_alias unless model? && subquery?(dataset)

          dataset.respond_to?(:model) && dataset.model <= model
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

        def with_tuples(dataset, columns, values)
          dataset.where(columns.map { |column| qualify(column, dataset) } => values)
        end

        def window(dataset)
          dataset.opts.values_at(:limit, :offset)
        end

        def terms(dataset)
          dataset.opts[:order] || []
        end

        def count_of(dataset)
          all = dataset.unordered.clone(lock: nil)
          reason(all) && keys ? distinct_keys(all).count : DatasetSql.once(all, keys).count
        end

        # Conditions on a dataset with a limit apply to the rows within the limit.
        def limited(scope)
          return scope unless scope.is_a?(::Sequel::Dataset) && window(scope).any?

          keys or raise DeclarationError, "#{scope.first_source_alias}: a dataset with LIMIT needs a primary key (a view has none)"
          where_keys(scope.unordered.unlimited, distinct_keys(reason(scope) ? scope : DatasetSql.once(scope, keys)))
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
          limit, offset = window(dataset)
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

        def whole?(scope)
          dialect.name != :other && constant_by_ids? && scope.equal?(model.dataset)
        end
      end
    end
  end
end
