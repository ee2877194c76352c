# frozen_string_literal: true

require "sequel"
require_relative "../rows"
require_relative "flat_reader"

module Castellan
  module Rows
    # Rows of a Sequel model or of a dataset (a table, a view, any SELECT): SQL from the public dataset API, run on the
    # connection that Sequel has for it.
    #
    #   SequelRows.for(MailLog).fetch(plan, MailLog.where(in_or_out: "in"))
    #   SequelRows.for(DB[:company_statistics]).columns   # => [:company_id, :company_name, …]
    #
    # What an association's dataset answers is the truth; one whose block or `dataset:` looks at its owner is refused by
    # {#association}, at boot. A dataset has no associations. Works with frozen databases and models. Frozen.
    class SequelRows
      autoload :Scopes, "castellan/rows/sequel_rows/scopes"

      include Adapter
      include Scopes

      # @return [Class, Sequel::Dataset] the model, or the dataset where there is none
      # @return [Sequel::Database]
      # @return [Dialect]
      # @return [String] the quoted table, or its alias
      # @return [Instances]
      attr_reader :model, :database, :dialect, :table_sql, :instances

      # @param object [Class, Sequel::Dataset]
      def self.for(object)
        new(object.respond_to?(:model) && object.is_a?(::Sequel::Dataset) ? object.model : object)
      end

      # @param memo [BoundedCache] shared by the adapters of models that are associated with each other
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        @model = model
        @memo = memo
        @dataset = (model.is_a?(::Sequel::Dataset) ? model : model.dataset).naked
        @database = @dataset.db
        @dialect = Dialect.for(DIALECTS.fetch(database.adapter_scheme, :other))
        @table_sql = @dataset.literal(@dataset.first_source_alias)
        @types = ColumnTypes.new(@dataset, model? ? model : nil, @dialect.name)
        @prepares = prepares?
        @instances = Instances.new(self)
        freeze
      end

      DIALECTS = { sqlite: :sqlite, postgres: :postgres }.freeze
      private_constant :DIALECTS

      # @!group What a declaration is checked against

      # @return [Array<Symbol>]
      def columns
        @dataset.columns
      end

      # @return [Symbol, nil] nil when there is none (a view) or it has several columns
      def primary_key
        return @types.primary_key unless model?

        model.primary_key if model.primary_key.is_a?(Symbol)
      end

      # @return [String]
      def plural_name
        @dataset.first_source_alias.to_s
      end

      # @return [String] the table of the rows themselves
      def table
        source = @dataset.first_source_table
        (source.is_a?(::Sequel::SQL::QualifiedIdentifier) ? source.column : source).to_s
      end

      # @return [Association, nil]
      # @raise [DeclarationError] for one that cannot be read as rows
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
      # @param scope [Sequel::Dataset, ChosenIds, Records]
      # @param viewer [Object, nil] given to the blocks that take it
      # @param scopes [ViewerScopes] what this viewer may see of related resources; the rows of `scope` itself are not narrowed
      # @return [Plan::RowSet]
      # @raise [Sequel::DatabaseError]
      def fetch(plan, scope, viewer: nil, scopes: ViewerScopes.new(viewer))
        plan.derive([:reader, model]) { FlatReader.of(plan, self) }.call(scope, viewer: viewer, scopes: scopes)
      end

      # The records of a scope (of a dataset: hashes), for blocks that need them: one statement through the caller's dataset.
      # @param whole [Boolean] with all columns, where the scope selects some of them
      # @return [Array<Sequel::Model, Hash>]
      def load(scope, whole: false)
        DatasetSql.records(whole ? widened(narrowed(scope)) : narrowed(scope), keys).all
      end

      # @param condition [String, nil] a further one, in SQL
      # @return [Array<Sequel::Model, Hash>] of these ids
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(scope, condition) : scope
        (column.is_a?(Array) ? by_several(all, ids, column) : all.where(qualify(column) => ids)).all
      end

      # @return [Division] what reads a scope in batches
      def division
        Division.new(self)
      end

      # @!group For the reader of a plan

      # @yieldparam session [Session] good inside the block
      def session
        yield Session.new(database, dialect, prepares: @prepares)
      end

      # @yieldparam session [Session] for questions about the schema
      def catalog_session(&block) = session(&block)

      # @param condition [String, nil] a further one
      # @return [String] SELECT of that list for ids given as one value
      def select_by_ids_sql(list, column, _joins = nil, condition = nil)
        condition = [dialect.among(qualified(column), database_type(column)), condition].compact.join(" AND ")
        return "SELECT #{list} FROM #{table_sql} WHERE #{condition}" if constant_by_ids?

        DatasetSql.select(@dataset.where(::Sequel.lit(condition)), list)
      end

      # @return [Boolean] whether that is the same in each request: a filter may be evaluated late
      def constant_by_ids?
        model? && model.simple_table ? true : false
      end

      # @return [Boolean] whether the error says that there is no connection to ask
      def unreachable?(error)
        error.is_a?(::Sequel::DatabaseConnectionError)
      end

      # @param object [Class, Sequel::Dataset]
      # @return [SequelRows] of another model
      def related(object)
        return ObjectRows.new if object.nil?

        object = Table.named(object)
        object == model ? self : @memo.fetch(object) { SequelRows.new(object, @memo) }
      end

      # @param kind [Symbol] :tables or :views
      # @return [Array<String>] of the database
      def names(kind)
        @memo.fetch([kind, database.object_id]) { database.public_send(kind).map(&:to_s) }
      end

      # @return [Integer] the same for all datasets of one database
      def database_name
        database.object_id
      end

      # @param table [Symbol, Object] a table, such as a join table
      # @return [Symbol, nil] its primary key, when it has one of one column
      def key_of(table)
        keys = schema_of(table).select { |_, column| column[:primary_key] }
        keys.first.first if keys.size == 1
      end

      # @param table [Symbol, Object]
      # @return [Symbol, nil] the type of its column, where that is known; see {#type}
      def type_in(table, column)
        found = schema_of(table).to_h[column]
        found && ColumnTypes.type(found)
      end

      # @return [String]
      def quote(column)
        @dataset.literal(::Sequel.identifier(column))
      end

      # @return [String] table and column
      def qualified(column)
        @dataset.literal(qualify(column))
      end

      # @return [String] the column, as its coder wants to read it
      def column_sql(column)
        @types.sql(column, qualified(column))
      end

      # @return [String] the type in the database, without a length
      def database_type(column)
        @types.database_type(column)
      end

      # @return [Symbol] Sequel's name for the type
      def type(column)
        @types.type(column)
      end

      # @return [Symbol, nil]
      def coder(column)
        @types.coder(column)
      end

      # @return [Object] what Sequel makes of the driver's value
      def cast(column, value)
        @types.cast(column, value)
      end

      # @return [Boolean] whether only an instance knows the value
      def needs_record?(column)
        @types.reader_of_its_own?(column)
      end

      # (see Adapter#record_reason)
      def record_reason(column)
        @types.record_reason(column)
      end

      # @return [Boolean] whether the text of the driver's value is that of the reader's, so that it identifies the row
      def identifies?(column)
        @types.identifies?(column)
      end

      # @return [Boolean]
      def integer?(column)
        @types.type(column) == :integer
      end

      # @return [Boolean]
      def same_database?(other)
        other.is_a?(SequelRows) && database.equal?(other.database)
      end

      # @return [String] JSON text
      def json(value)
        JSONValue.text(value)
      end

      # @!endgroup

      private

      # Sequel prepares nothing unless it is asked to, because a pool of connections in between may not know how.
      def prepares?
        model? && defined?(::Sequel::Plugins::PreparedStatements) && model.plugins.include?(::Sequel::Plugins::PreparedStatements) || false
      end

      def schema_of(table)
        database.schema(table)
      rescue ::Sequel::Error
        []
      end

      def model?
        model.is_a?(Class)
      end

      def qualify(column)
        ::Sequel.qualify(@dataset.first_source_alias, column)
      end
    end
  end
end

require_relative "sequel_rows/instances"
require_relative "sequel_rows/session"
require_relative "sequel_rows/division"
require_relative "sequel_rows/column_types"
require_relative "sequel_rows/dataset_sql"
require_relative "sequel_rows/named"
require_relative "sequel_rows/lazy_statement"
require_relative "sequel_rows/association"
