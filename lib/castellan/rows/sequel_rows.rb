# frozen_string_literal: true

require "sequel"
require_relative "../rows"

module Castellan
  module Rows
    # Reads rows of a Sequel model or of a dataset (a table, a view, any SELECT).
    # The SQL comes from the public dataset API and runs on Sequel's connection.
    #
    #   SequelRows.for(MailLog).fetch(plan, MailLog.where(in_or_out: "in"))
    #   SequelRows.for(DB[:company_statistics]).columns   # => [:company_id, :company_name, …]
    #
    # The result equals what each association's dataset returns. A dataset has no associations. Works with
    # frozen databases and models. Frozen.
    class SequelRows
      autoload :Scopes, "castellan/rows/sequel_rows/scopes"
      autoload :Siblings, "castellan/rows/sequel_rows/siblings"

      include Adapter
      include Scopes

      # @return [Class, Sequel::Dataset] the model, or the dataset if it has no model
      # @return [Sequel::Database]
      # @return [Dialect]
      # @return [String] the quoted table, or its alias
      # @return [Instances]
      attr_reader :model, :database, :dialect, :table_sql, :instances

      # @param object [Class, Sequel::Dataset]
      def self.for(object)
        new(object.respond_to?(:model) && object.is_a?(::Sequel::Dataset) ? object.model : object)
      end

      # @param memo [BoundedCache] shared by the adapters of associated models
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        @model = model
        @memo = memo
        @dataset = (model.is_a?(::Sequel::Dataset) ? model : model.dataset).naked
        @database = @dataset.db
        @dialect = Dialect.for(DIALECTS.fetch(database.adapter_scheme, :other))
        @table_sql = @dataset.literal(@dataset.first_source_alias)
        @types = ColumnTypes.new(@dataset, model? ? model : nil, @dialect.name)
        @prepares = prepares?
        @keys = Array(model? ? model.primary_key : primary_key)
        @keys = nil if @keys.empty?
        @instances = Instances.new(self)
        freeze
      end

      DIALECTS = { sqlite: :sqlite, postgres: :postgres }.freeze
      SERVER = :read_only
      private_constant :DIALECTS, :SERVER

      # @!group Checking declarations

      # @return [Array<Symbol>]
      def columns
        @dataset.columns
      end

      # @return [Symbol, nil] nil if there is no primary key (a view), or one of several columns
      def primary_key
        return @types.primary_key unless model?

        model.primary_key if model.primary_key.is_a?(Symbol)
      end

      # @return [String]
      def plural_name
        @dataset.first_source_alias.to_s
      end

      # @return [String] the table's name
      def table
        source = @dataset.first_source_table
        (source.is_a?(::Sequel::SQL::QualifiedIdentifier) ? source.column : source).to_s
      end

      # @return [Association, nil] nil if the model has no association of that name
      def association(name)
        reflection = model? && model.association_reflection(name)
        reflection && @memo.fetch([model, name]) { Association.new(self, reflection) } || nil
      end

      # @return [Array<Symbol>]
      def associations
        model? ? model.associations : []
      end

      # @!endgroup

      # @param plan [Plan::FetchPlan]
      # @param scope [Sequel::Dataset, Ids::Chosen, Records]
      # @param viewer [Object, nil] passed to the blocks that take it
      # @param scopes [ViewerScopes] which related rows this viewer may see; they do not narrow `scope` itself
      # @return [Plan::RowSet]
      # @raise [Sequel::DatabaseError]
      def fetch(plan, scope, viewer: nil, scopes: ViewerScopes.new(viewer))
        plan.derive([:reader, model]) { Reader.new(plan, self) }.call(scope, viewer: viewer, scopes: scopes)
      end

      # @param ids [Array] values of `column`
      # @param condition [String, nil] an additional SQL condition
      # @return [Array<Sequel::Model, Hash>]
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(scope, condition) : scope
        (column.is_a?(Array) ? by_several(all, ids, column) : all.where(qualify(column) => ids)).all
      end

      # @!group Reading a plan

      # @yieldparam session [Session] valid inside the block
      def session
        yield Session.new(database, dialect, prepares: @prepares)
      end

      # Sequel checks out a connection for each statement, so there is none to release after the block.
      def apart
        yield
      end

      # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
      def snapshot(&block)
        return yield if database.in_transaction?(server: SERVER)

        database.transaction(server: SERVER, **(dialect.name == :postgres ? { isolation: :repeatable } : {}), &block)
      end

      # @yieldparam session [Session] for schema queries
      def catalog_session(&block) = session(&block)

      # @param condition [String, nil] an additional SQL condition
      # @return [String] a SELECT of that list whose ids are one bound value
      def select_by_ids_sql(list, column, joins = nil, condition = nil)
        condition = [dialect.among(qualified(column), database_type(column)), condition].compact.join(" AND ")
        return "SELECT #{list} FROM #{[table_sql, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

        DatasetSql.select(@dataset.where(::Sequel.lit(condition)), list, joins)
      end

      # @return [Boolean] whether {#select_by_ids_sql} is constant; a filtered model's is not
      def constant_by_ids?
        model? && model.simple_table ? true : false
      end

      # @return [Boolean] whether the error means that no connection could be established
      def unreachable?(error)
        error.is_a?(::Sequel::DatabaseConnectionError)
      end

      # @param object [Class, Sequel::Dataset, Symbol, nil] the related model, dataset or table
      # @return [SequelRows, ObjectRows] its adapter; nil has one for plain objects
      def related(object)
        return ObjectRows.new if object.nil?

        object = Rows.named(object)
        object == model ? self : @memo.fetch(object) { SequelRows.new(object, @memo) }
      end

      # @param kind [Symbol] :tables or :views
      # @return [Array<String>] their names in the database
      def names(kind)
        @memo.fetch([kind, database.object_id]) { database.public_send(kind).map(&:to_s) }
      end

      # @return [Integer] the same for all datasets of one database
      def database_name
        database.object_id
      end

      # @param table [Symbol, Object] a table, such as a join table
      # @return [Symbol, nil] its primary key; nil if it has none, or one of several columns
      def key_of(table)
        keys = schema_of(table).select { |_, column| column[:primary_key] }
        keys.first.first if keys.size == 1
      end

      # @param table [Symbol, Object]
      # @return [Symbol, nil] the column's type; nil if it is unknown; see {#type}
      def type_in(table, column)
        found = schema_of(table).to_h[column]
        found && ColumnTypes.type(found)
      end

      # @return [String]
      def quote(column)
        @dataset.literal(::Sequel.identifier(column))
      end

      # @return [String] the quoted table and column
      def qualified(column)
        @dataset.literal(qualify(column))
      end

      # @return [String] the SQL expression that the column's coder reads
      def column_sql(column)
        @types.sql(column, qualified(column))
      end

      # @return [String] the database type, without a length
      def database_type(column)
        @types.database_type(column)
      end

      # @return [Symbol, nil] Sequel's name for the type, or :uuid
      def type(column)
        @types.type(column)
      end

      # @return [Symbol, nil] see {ColumnTypes#coder}
      def coder(column)
        @types.coder(column)
      end

      # @return [Object] Sequel's value for the driver's value
      def cast(column, value)
        @types.cast(column, value)
      end

      # @return [String] the value as SQL
      def literal(value)
        @dataset.literal(value)
      end

      # @return [Boolean] whether the column can be read only through an instance
      def needs_record?(column)
        @types.reader_of_its_own?(column)
      end

      # (see Adapter#record_reason)
      def record_reason(column)
        @types.record_reason(column)
      end

      # @return [Boolean] whether the driver's and the reader's value are the same string, as ids must be
      def identifies?(column)
        @types.identifies?(column)
      end

      # @return [Boolean]
      def integer?(column)
        @types.type(column) == :integer
      end

      # @return [Boolean] whether the column is the primary key or has a unique index
      def unique?(column)
        column.to_s == primary_key.to_s || indexes.any? { |index| index[:unique] && index[:columns] == [column.to_sym] }
      end

      # @return [Array<Array<String>>] the further columns of each index that begins with the column
      def indexes_from(column)
        lists = indexes.map { |index| index[:columns].map(&:to_s) }
        lists.select { |columns| columns.first == column.to_s }.map { |columns| columns.drop(1) }
      end

      # @return [Boolean]
      def same_database?(other)
        other.is_a?(SequelRows) && database.equal?(other.database)
      end

      # @return [Symbol]
      def column_name(name)
        name.to_sym
      end

      # @return [String] JSON text
      def json(value)
        JSONValue.text(value)
      end

      # @!endgroup

      private

      # Prepares only with Sequel's plugin, because a connection pooler may not support it.
      def prepares?
        model? && defined?(::Sequel::Plugins::PreparedStatements) && model.plugins.include?(::Sequel::Plugins::PreparedStatements) || false
      end

      def indexes
        @memo.fetch([:indexes, model]) { database.indexes(@dataset.first_source_table).values }
      end

      def schema_of(table)
        database.schema(table)
      rescue ::Sequel::Error
        []
      end

      def model?
        model.is_a?(Class)
      end
    end
  end
end

require_relative "sequel_rows/instances"
require_relative "sequel_rows/session"
require_relative "sequel_rows/column_types"
require_relative "sequel_rows/dataset_sql"
require_relative "sequel_rows/association"
