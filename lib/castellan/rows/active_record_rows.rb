# frozen_string_literal: true

require "active_record"
require_relative "../rows"

module Castellan
  module Rows
    # Reads rows of an ActiveRecord model.
    # The SQL comes from the public relation API, so that default scopes, association scopes, STI and several
    # databases work; it runs on the raw connection, so that no instances are built.
    #
    #   rows = ActiveRecordRows.for(User)
    #   rows.columns                                   # => [:id, :email, …]
    #   rows.association(:roles).to_many?              # => true
    #   rows.fetch(plan, User.where(active: true))     # => RowSet
    #
    # The result equals what lazy loading of each association returns. Frozen.
    class ActiveRecordRows
      autoload :Scopes, "castellan/rows/active_record_rows/scopes"
      autoload :Siblings, "castellan/rows/active_record_rows/siblings"

      include Adapter
      include Scopes

      # @return [Class] the model
      # @return [Dialect]
      # @return [Instances]
      attr_reader :model, :dialect, :instances

      # @param object [Class, ActiveRecord::Relation]
      def self.for(object)
        new(object.is_a?(::ActiveRecord::Relation) ? object.klass : object)
      end

      # @return [Array<Class>] the loaded subclasses that share the model's table (single table inheritance)
      def self.subclasses(model)
        inherited?(model) ? model.descendants : NO_CLASSES
      end

      # @return [Boolean] whether subclasses share the model's table
      def self.inherited?(model)
        model.columns_hash.key?(model.inheritance_column.to_s)
      end

      # Compares the types of the two columns of an association's join. ActiveRecord casts the owner's key to
      # the other column's type; preloading and rows compare strings: "08" does not match 8.
      # @param owner [Class] the model of the keys
      # @param link [ActiveRecord::Reflection::AbstractReflection] leads to the table with the other column
      # @param related [Class] the model of that table
      # @return [Boolean] whether two keys are equal only if their texts are
      def self.comparable_keys?(owner, link, related = link.klass)
        columns = [owner.columns_hash[link.join_foreign_key.to_s], related.columns_hash[link.join_primary_key(related).to_s]].compact
        types = columns.map { |column| column.type == :string ? :text : column.type || column.sql_type }
        types.uniq.size < 2 && columns.all? { |column| one_text?(column) }
      end

      # {OwnerKey}'s number does not fit into a small integer.
      def self.one_text?(column)
        return false if column.type == :citext || PADDED.match?(column.sql_type.to_s)
        return column.limit.nil? || column.limit >= KEY_BYTES if column.type == :integer

        column.collation.nil? || EXACT.include?(column.collation.upcase)
      end
      private_class_method :one_text?

      # @param memo [BoundedCache] shared by the adapters of associated models
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        @model = model
        @memo = memo
        lease { |connection| learn(connection) }
        @types = ColumnTypes.new(model, @dialect.name)
        @database_types = model.column_names.to_h { |name| [name, @types.database_type(name)] }.freeze
        @instances = Instances.new(self)
        freeze
      end

      DIALECTS = { "SQLite" => :sqlite, "PostgreSQL" => :postgres, "PostGIS" => :postgres }.freeze
      EXACT = %w[BINARY C POSIX].freeze # collations
      PADDED = /\A(?:character|bpchar)(?:\(|\z)/ # PostgreSQL's char(n), padded with blanks that comparisons ignore
      KEY_BYTES = 4
      NO_CLASSES = [].freeze
      GIVES_BACK = ::ActiveRecord::ConnectionHandling.method_defined?(:with_connection)
      private_constant :DIALECTS, :EXACT, :PADDED, :KEY_BYTES, :NO_CLASSES, :GIVES_BACK

      # @!group Checking declarations

      # @return [Array<Symbol>] the columns and their aliases
      def columns
        (model.column_names + model.attribute_aliases.keys).map(&:to_sym)
      end

      # @return [Symbol, nil] nil if the model has no primary key, or one of several columns
      def primary_key
        model.primary_key.to_sym if model.primary_key.is_a?(String)
      end

      # @return [String]
      def plural_name
        model.name ? model.model_name.plural : table
      end

      # @return [String] the table's name
      def table
        model.table_name
      end

      # @return [Association, nil] nil if the model has no association of that name
      def association(name)
        reflection = model.reflect_on_association(name)
        reflection && @memo.fetch([model, name]) { Association.new(self, reflection) }
      end

      # @return [Array<Symbol>]
      def associations
        model.reflect_on_all_associations.map(&:name)
      end

      # @!endgroup

      # @param plan [Plan::FetchPlan]
      # @param scope [ActiveRecord::Relation, Ids::Chosen, Records]
      # @param viewer [Object, nil] passed to the blocks that take it
      # @param scopes [ViewerScopes] which related rows this viewer may see; they do not narrow `scope` itself
      # @return [Plan::RowSet]
      # @raise [ActiveRecord::StatementInvalid] as ActiveRecord would
      def fetch(plan, scope, viewer: nil, scopes: ViewerScopes.new(viewer))
        classes = loaded_classes(plan)
        key = classes.empty? ? @reader : [@reader, *classes]
        plan.derive(key) { Reader.new(plan, self) }.call(scope, viewer: viewer, scopes: scopes)
      end

      # @param ids [Array] values of `column`
      # @param condition [String, nil] an additional SQL condition
      # @return [Array<ActiveRecord::Base>] found without the default scope, because associations link to
      #   hidden rows as well
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(model.unscoped, condition) : model.unscoped
        (column.is_a?(Array) ? by_several(all, ids, column) : all.where(column => ids)).to_a
      end

      # @!group Reading a plan

      # @yieldparam session [Session] valid inside the block
      def session
        lease { |connection| yield Session.new(connection, statement_name, dialect) }
      end

      # Releases the connection after the block, unless the caller held it. ActiveRecord before 7.2 keeps
      # leases.
      def apart
        pool = model.connection_pool
        held = pool.active_connection?
        yield
      ensure
        pool.release_connection unless held
      end

      # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
      def snapshot(&block)
        return yield if model.connection_pool.active_connection? && model.connection.transaction_open?

        model.transaction(**(dialect.name == :postgres ? { isolation: :repeatable_read } : {}), &block)
      end

      # @yieldparam session [Session] for schema queries, which query observers ignore
      def catalog_session
        lease { |connection| yield Session.new(connection, "SCHEMA", dialect) }
      end

      # @return [String] the name of these statements in the log
      attr_reader :statement_name

      # (see Adapter#shares?)
      def shares?(other)
        same_database?(other)
      end

      # (see Adapter#overlaps?)
      def overlaps?
        dialect.name == :postgres && PostgresPipeline.possible?
      end

      # @param condition [String, nil] an additional SQL condition
      # @return [String] a SELECT of that list whose ids are one bound value
      def select_by_ids_sql(list, column, joins = nil, condition = nil)
        condition = [dialect.among(qualified(column), database_type(column)), condition].compact.join(" AND ")
        return "SELECT #{list} FROM #{[table_sql, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

        all = joins ? model.unscoped.joins(joins) : model.unscoped
        RelationSql.select(all.where(Arel.sql(condition)), list)
      end

      # @return [Boolean] whether {#select_by_ids_sql} is constant; with STI, loading a subclass changes it
      def constant_by_ids?
        !model.finder_needs_type_condition?
      end

      # @return [Boolean] whether the error means that no connection could be established
      def unreachable?(error)
        error.is_a?(::ActiveRecord::ConnectionNotEstablished)
      end

      # @param object [Class, ActiveRecord::Relation, Symbol, nil] the related model or table
      # @return [ActiveRecordRows, ObjectRows] its adapter; nil has one for plain objects
      def related(object)
        return ObjectRows.new if object.nil?

        object = Rows.named(object)
        other = object.is_a?(::ActiveRecord::Relation) ? object.klass : object
        other == model ? self : @memo.fetch(other) { ActiveRecordRows.new(other, @memo) }
      end

      # @param kind [Symbol] :tables or :views
      # @return [Array<String>] their names in the database
      def names(kind)
        @memo.fetch([kind, model.connection_specification_name]) { lease(&kind) }
      end

      # @return [String] the same for all models of one database
      def database_name
        model.connection_specification_name
      end

      # @return [String] the quoted table
      attr_reader :table_sql

      # @return [String]
      def quote(column)
        @quoted.fetch(column_name(column))
      end

      # @return [String] the quoted table and column
      def qualified(column)
        "#{table_sql}.#{quote(column)}"
      end

      # @return [String] the SQL expression that the column's coder reads
      def column_sql(column)
        @types.sql(column_name(column), qualified(column))
      end

      # @return [String] the database type, without a length
      def database_type(column)
        @database_types.fetch(column_name(column))
      end

      # @return [Symbol, nil] see {ColumnTypes#coder}
      def coder(column)
        @types.coder(column_name(column))
      end

      # @return [Object] the model's attribute value for the driver's value
      def cast(column, value)
        @types.cast(column_name(column), value)
      end

      # @return [String] the value as SQL
      def literal(value)
        lease { |connection| connection.quote(value) }
      end

      # @return [Boolean] whether the column can be read only through an instance
      def needs_record?(column)
        @types.reader_of_its_own?(column_name(column))
      end

      # (see Adapter#record_reason)
      def record_reason(column)
        @types.record_reason(column_name(column))
      end

      # @return [Boolean] whether the driver's and the reader's value are the same string, as ids must be
      def identifies?(column)
        @types.identifies?(column_name(column))
      end

      # @return [Boolean]
      def integer?(column)
        @types.coder(column_name(column)) == :integer
      end

      # @return [Boolean] whether a default scope or STI hides rows of the table
      def scoped?
        model.default_scopes.any? || model.finder_needs_type_condition?
      end

      # @return [Boolean] whether the column is the primary key or has a unique index
      def unique?(column)
        column.to_s == model.primary_key || whole_indexes.any? { |index| index.unique && index.columns == [column.to_s] }
      end

      # @return [Boolean] whether a B-tree index starts with the column
      def indexed?(column)
        return true if column.to_s == model.primary_key

        whole_indexes.any? { |index| Array(index.columns).first == column.to_s && index.using == :btree }
      end

      # @return [Array<Array<String>>] the further columns of each index that begins with the column
      def indexes_from(column)
        lists = indexes.map { |index| Array(index.columns) }
        lists.select { |columns| columns.first == column.to_s }.map { |columns| columns.drop(1) }
      end

      # @return [Boolean] whether a validated foreign key links the column to that table and key
      def references?(column, table, key)
        keys = @memo.fetch([:foreign_keys, model]) { lease { |connection| connection.foreign_keys(model.table_name) } }
        keys.any? { |found| found.column == column && found.to_table == table && found.primary_key == key && found.validated? }
      end

      # @return [Boolean]
      def same_database?(other)
        other.is_a?(ActiveRecordRows) && model.connection_specification_name == other.model.connection_specification_name
      end

      # @param name [Symbol, String] a column or an alias
      # @return [String]
      def column_name(name)
        @names[name] || model.attribute_aliases.fetch(name.to_s, name.to_s)
      end

      # @return [String] JSON text
      def json(value)
        ::ActiveSupport::JSON.encode(value)
      end

      # (see Adapter#custom_type)
      def custom_type(column)
        @types.custom_type(column_name(column))
      end

      # (see Adapter#loaded_classes)
      def loaded_classes(plan)
        several = plan.derive(@several_classes) do
          [model, *plan.nodes.flat_map { |node| models_read(node) }].uniq.select { |one| several?(one) }
        end
        several.empty? ? several : several.map { |one| one.descendants.size }
      end

      # @!endgroup

      private

      # Uses the connection that the caller holds, so that the caller's transaction applies; otherwise leases
      # one for the block. Before ActiveRecord 7.2 the connection stays leased.
      def lease(&block)
        GIVES_BACK ? model.with_connection(&block) : yield(model.connection)
      end

      def indexes
        @memo.fetch([:indexes, model]) { lease { |connection| connection.indexes(model.table_name) } }
      end

      def whole_indexes
        indexes.select { |index| index.where.nil? }
      end

      def models_read(node)
        model = node.definition.model or return []
        adapter = related(model)
        [model, *node.columns.map(&:path).uniq.map { |path| adapter.at(path).model }]
      end

      def several?(object)
        object = object.klass if object.is_a?(::ActiveRecord::Relation)
        object.is_a?(Class) && object < ::ActiveRecord::Base && ActiveRecordRows.inherited?(object)
      end

      def learn(connection)
        @dialect = Dialect.for(DIALECTS.fetch(connection.adapter_name, :other))
        @table_sql = model.quoted_table_name
        @statement_name = "#{model.name} Castellan".freeze
        @quoted = model.column_names.to_h { |name| [name, connection.quote_column_name(name)] }.freeze
        @names = { **model.column_names.to_h { |name| [name, name] }, **model.attribute_aliases }
        @names = @names.merge(@names.transform_keys(&:to_sym)).freeze
        @reader = :"reader of #{model.object_id}" # a symbol, because every request looks it up
        @several_classes = :"several classes of #{model.object_id}"
      end
    end
  end
end

require_relative "active_record_rows/instances"
require_relative "active_record_rows/loaded_columns"
require_relative "active_record_rows/session"
require_relative "active_record_rows/column_types"
require_relative "active_record_rows/relation_sql"
require_relative "active_record_rows/constant_scope"
require_relative "active_record_rows/association"
