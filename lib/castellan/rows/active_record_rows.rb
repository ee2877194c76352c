# frozen_string_literal: true

require "active_record"
require_relative "../active_record_thread"
require_relative "../rows"

module Castellan
  module Rows
    # Reads rows of an ActiveRecord model, the same rows that lazy loading of each association returns.
    #
    #   rows = ActiveRecordRows.for(User)
    #   rows.columns                                   # => [:id, :email, …]
    #   rows.association(:roles).to_many?              # => true
    #   rows.fetch(plan, User.where(active: true))     # => RowSet
    #
    # Generates SQL with the public relation API, so that default scopes, association scopes, STI and several
    # databases work; runs it on the raw connection, so that no instances are built. Frozen.
    class ActiveRecordRows
      include Adapter

      # @param object [Class, ActiveRecord::Relation]
      def self.for(object) = new(model_of(object))

      # @return [Class]
      def self.model_of(object) = object.is_a?(::ActiveRecord::Relation) ? object.klass : object

      # @return [Array<Class>] the loaded subclasses that share the model's table (single table inheritance)
      def self.subclasses(model) = inherited?(model) ? model.descendants : NO_CLASSES

      # @return [Boolean] whether subclasses share the model's table
      def self.inherited?(model) = model.columns_hash.key?(model.inheritance_column.to_s)

      # @return [Boolean] whether the model has a default scope, by `default_scope` or as a class method
      def self.default_scope?(model)
        model.default_scopes.any? || !::ActiveRecord::Base.is_a?(model.method(:default_scope).owner)
      end

      # @return [Boolean] whether a default scope, STI or a rewritten statement hides rows of the model's table
      def self.hides_rows?(model) = default_scope?(model) || model.finder_needs_type_condition? || rewritten?(model)

      # @return [Boolean] whether the model's conditions are the same in every request: only constant default scopes
      def self.fixed?(model)
        ::ActiveRecord::Base.is_a?(model.method(:default_scope).owner) && !model.finder_needs_type_condition? && !rewritten?(model) &&
          model.default_scopes.all? { |one| Association::ConstantScope.constant?(one.scope) }
      end

      # A gem that replaces a method of relations, such as `build_arel`, may add what no value of a relation shows:
      # activerecord-multi-tenant adds the current tenant. Then only the SQL of a relation identifies its rows.
      # @return [Boolean]
      def self.rewritten?(model)
        relation = model.relation_delegate_class(::ActiveRecord::Relation)
        REWRITABLE.any? { |name| !relation.instance_method(name).source_location&.first.to_s.start_with?(LIBRARY) }
      end

      # Uses the connection that the caller holds, so that the caller's transaction applies; otherwise leases
      # one for the block. Before ActiveRecord 7.2 the connection stays leased.
      def self.lease(model, &block) = GIVES_BACK ? model.with_connection(&block) : yield(model.connection)

      # Compares the types of the two columns of an association's join. Lazy loading casts the owner's key to
      # the type of the other column; preloading and rows compare strings, so "08" does not match 8.
      # @param owner [Class] the model that has the keys
      # @param link [ActiveRecord::Reflection::AbstractReflection] the reflection of the join
      # @param related [Class] the model of the joined table
      # @return [Boolean] whether comparing the keys as strings finds the same rows
      def self.comparable_keys?(owner, link, related = link.klass)
        columns = [owner.columns_hash[link.join_foreign_key.to_s], related.columns_hash[link.join_primary_key(related).to_s]].compact
        types = columns.map { |column| column.type == :string ? :text : column.type || column.sql_type }
        types.uniq.size < 2 && columns.all? { |column| one_text?(column) }
      end

      # Excludes smallint, because the number of {Association::OwnerKey} does not fit.
      def self.one_text?(column)
        return false if column.type == :citext || PADDED.match?(column.sql_type.to_s)
        return column.limit.nil? || column.limit >= KEY_BYTES if column.type == :integer

        column.collation.nil? || EXACT.include?(column.collation.upcase)
      end
      private_class_method :one_text?

      # @param memo [BoundedCache] shared by the adapters of associated models
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        start(model, memo)
        lease do |connection|
          @dialect = Dialect.for(DIALECTS.fetch(connection.adapter_name, :other))
          @types = ColumnTypes.new(model, connection, @dialect.name)
        end
        @several_classes = :"several classes of #{model.object_id}"
        @scopes = Scopes.new(self)
        @instances = Instances.new(self)
        freeze
      end

      LIBRARY = "#{File.dirname(::ActiveRecord.method(:gem_version).source_location.first)}/".freeze
      DIALECTS = { "SQLite" => :sqlite, "PostgreSQL" => :postgres, "PostGIS" => :postgres }.freeze
      EXACT = %w[BINARY C POSIX].freeze # collations
      PADDED = /\A(?:character|bpchar)(?:\(|\z)/ # PostgreSQL's char(n), padded with blanks that comparisons ignore
      KEY_BYTES = 4
      NO_CLASSES = [].freeze
      SCOPED = -1
      REWRITABLE = %i[build_arel arel where_clause].freeze
      GIVES_BACK = ::ActiveRecord::ConnectionHandling.method_defined?(:with_connection)
      private_constant :LIBRARY, :DIALECTS, :EXACT, :PADDED, :KEY_BYTES, :NO_CLASSES, :SCOPED, :REWRITABLE, :GIVES_BACK

      # @!group Checking declarations

      # @return [Array<Symbol>] the columns and their aliases
      def columns = (model.column_names + model.attribute_aliases.keys).map(&:to_sym)

      # @return [Symbol, nil] nil without a primary key or with a composite one
      def primary_key
        model.primary_key.to_sym if model.primary_key.is_a?(String)
      end

      # @return [String] the table's name
      def table = model.table_name

      # @return [Association, nil] nil if the model has no association of that name, or one to a class that is no model (ActiveHash)
      def association(name)
        reflection = model.reflect_on_association(name) or return
        @memo.fetch([model, name]) { Association.new(self, reflection) if of_model?(reflection) }
      end

      # @return [Array<Symbol>]
      def associations = model.reflect_on_all_associations.map(&:name)

      # @param table [String, Symbol] of this database or of ActiveRecord::Base's, with its schema if given
      # @return [Array<Symbol>, nil] nil if there is no such table or view
      def columns_of(table)
        found { |connection| connection.columns(table.to_s).map { |one| one.name.to_sym } if connection.data_source_exists?(table.to_s) }
      end

      # (see SequelRows#column_of_any_table?)
      def column_of_any_table?(name)
        !found { |connection| connection.select_value("#{Adapter::COLUMNS} AND attname = #{connection.quote(name.to_s)}") }.nil?
      end

      # @!endgroup

      # @param name [String, nil] names the statements in the log; observers ignore "SCHEMA"
      # @yieldparam session [Session] valid until the block ends
      def session(name = nil)
        lease { |connection| yield Session.new(connection, name, self) }
      end

      # Releases the connection after the block, unless the caller held it:
      # ActiveRecord before 7.2 would keep it leased.
      def apart
        pool = model.connection_pool
        held = pool.active_connection?
        yield
      ensure
        pool&.release_connection unless held
      end

      # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
      def snapshot(&block)
        return yield if model.connection_pool.active_connection?&.transaction_open?

        model.transaction(**(dialect.name == :postgres ? { isolation: :repeatable_read } : {}), &block)
      end

      # @return [Array(Array<Hash>, String)] the blocks of `connected_to`, and the search path, if this thread has changed them
      def place
        [(::ActiveRecord::Base.connected_to_stack.dup if ActiveRecordThread.connected_elsewhere?), changed_path]
      end

      # (see Adapter#within)
      # @raise [ConfigurationError] if the search path has changed: the connection is released between the pieces of a stream
      def within(place)
        blocks, path = place
        if blocks
          stack = ::ActiveRecord::Base.connected_to_stack
          before = stack.dup
          stack.replace(blocks)
        end
        check_path(path) if path
        yield
      ensure
        stack.replace(before) if before
      end

      # Rails closes them before it draws the routes, and the check of the resources opens one again. Forked workers warn of
      # an inherited one to SQLite. A database in memory would be lost with its connection.
      def disconnect_idle
        pool = model.connection_pool
        pool.flush! unless dialect.name == :sqlite && pool.db_config.database.to_s.match?(/\A\z|:memory:|mode=memory/)
      end

      # @return [Boolean]
      def same_database?(other)
        other.is_a?(ActiveRecordRows) && model.connection_specification_name == other.model.connection_specification_name
      end

      # @return [String] JSON text
      def json(value) = ::ActiveSupport::JSON.encode(value)

      # Also differs inside `unscoped` and `scoping(all_queries: true)`, where no reader of other requests can be used.
      # (see Adapter#loaded_classes)
      def loaded_classes(plan)
        several = plan.derive(@several_classes) do
          models = plan.nodes.select { |node| node.definition.model }.flat_map do |node|
            node.columns.map(&:path).uniq.map { |path| related(node.definition.model).at(path).model }
          end
          [model, *models].uniq.select { |one| one.is_a?(Class) && one < ::ActiveRecord::Base && ActiveRecordRows.inherited?(one) }
        end
        loaded = several.empty? ? several : several.map { |one| one.descendants.size }
        ActiveRecordThread.associations_scoped? ? [SCOPED, ActiveRecordThread.scoped_columns, *loaded] : loaded
      end

      private

      # ActiveRecord raises ArgumentError for other classes, but ActiveHash defines `klass`.
      def of_model?(reflection)
        reflection.polymorphic? || reflection.klass <= ::ActiveRecord::Base
      rescue ArgumentError
        false
      end

      def lease(&block) = ActiveRecordRows.lease(model, &block)

      # A superclass of resources of several databases may declare what only the main one has.
      # @return [Object, nil] the block's result for the model's connection, else for that of ActiveRecord::Base
      def found(&block)
        lease(&block) || begin
          ActiveRecordRows.lease(::ActiveRecord::Base, &block)
        rescue ::ActiveRecord::ActiveRecordError
          nil # it has no database, or one of another kind
        end
      end

      def changed_path
        return unless dialect.name == :postgres

        pool = model.connection_pool
        ActiveRecordThread.changed_search_path(pool, pool.active_connection?)
      rescue ::ActiveRecord::ConnectionNotEstablished
        nil # of a role without a database
      end

      def check_path(path)
        current = apart { lease(&:schema_search_path) } # also if no code has read or set it
        return if current == path

        raise ConfigurationError, "a document was made with the search path #{path.inspect} and is read with #{current.inspect}: a Rack " \
                                  "body is read after the middleware that switches tenants has ended; write document.to_json before that"
      end
    end
  end
end

require_relative "active_record_rows/instances"
require_relative "active_record_rows/session"
require_relative "active_record_rows/column_types"
require_relative "active_record_rows/scopes"
require_relative "active_record_rows/association"
require_relative "active_record_rows/siblings"
