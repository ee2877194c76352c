# frozen_string_literal: true

require "sequel"
require_relative "../rows"

module Castellan
  module Rows
    # Reads rows of a Sequel model or of a dataset (a table, a view, any SELECT).
    #
    #   SequelRows.for(MailLog).fetch(plan, MailLog.where(in_or_out: "in"))
    #   SequelRows.for(DB[:company_statistics]).columns   # => [:company_id, :company_name, …]
    #
    # Generates SQL with the public dataset API and runs it on Sequel's connection, also of frozen databases.
    # Returns the same rows as each association's dataset; a dataset has no associations. Frozen.
    class SequelRows
      include Adapter

      # @param object [Class, Sequel::Dataset]
      def self.for(object) = new(object.respond_to?(:model) && object.is_a?(::Sequel::Dataset) ? object.model : object)

      # @return [Class, Sequel::Dataset]
      def self.model_of(object) = object

      # A dataset with methods of its own (`dataset_module`, `with_extend`) may write a condition that none of its options
      # shows, such as that of a tenant. Then only the SQL of a dataset identifies its rows.
      # @param dataset [Sequel::Dataset]
      # @return [Boolean]
      def self.rewritten?(dataset)
        WRITERS.any? { |name| !library?(dataset.method(name)) }
      end

      # @return [Sequel::Dataset] whose SQL has its values also with the extension pg_auto_parameterize
      def self.without_parameters(dataset) = dataset.respond_to?(:no_auto_parameterize) ? dataset.no_auto_parameterize : dataset

      # The comment of the extension sql_comments may name a request. Statements are kept for other requests.
      # @param dataset [Sequel::Dataset]
      # @return [String] its SQL with all values and without this comment
      def self.sql(dataset)
        sql = without_parameters(dataset).sql
        comment = dataset.send(:_sql_comment) if dataset.respond_to?(:_sql_comment, true)
        comment ? sql.delete_suffix(comment) : sql
      end

      # @return [Boolean] whether Sequel defines the method
      def self.library?(method) = method.source_location&.first.to_s.start_with?(LIBRARY)

      # The plugin sharding reads the associations of a record from the record's server.
      # @param record [Sequel::Model]
      # @return [Object, nil] the server of the record, if it is not the one that this thread reads
      def self.other_server(record)
        return unless record.db.sharded?

        server = record.send(:this_server)
        pool = record.db.pool
        server unless [:default, :read_only, pool.send(:pick_server, :read_only)].include?(pool.send(:pick_server, server))
      end

      # @param memo [BoundedCache] shared by the adapters of associated models
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        model = Subquery.of(model) if model.is_a?(::Sequel::Dataset)
        start(model, memo)
        @dataset = (model.is_a?(::Sequel::Dataset) ? model : model.dataset).naked
        @database = @dataset.db
        @dialect = Dialect.for(DIALECTS.fetch(database.adapter_scheme, :other))
        @types = ColumnTypes.new(@dataset, model? ? model : nil, @dialect.name)
        @scopes = Scopes.new(self, @dataset)
        @instances = Instances.new(self)
        freeze
      end

      DIALECTS = { sqlite: :sqlite, postgres: :postgres }.freeze
      SERVER = :read_only
      LIBRARY = "#{File.dirname(::Sequel::Dataset.instance_method(:select).source_location.first, 2)}/".freeze
      WRITERS = %i[select_sql sql].freeze
      private_constant :DIALECTS, :SERVER, :LIBRARY, :WRITERS

      # @!group Checking declarations

      # @return [Array<Symbol>]
      def columns = @dataset.columns

      # @return [Symbol, nil] nil without a primary key (a view) or with a composite one
      def primary_key
        return types.primary_key unless model?

        model.primary_key if model.primary_key.is_a?(Symbol)
      end

      # @return [String] the table's name, with a schema if it has one; of a subquery, that of its first table
      def table
        source = @dataset.first_source_table
        source = source.first_source_table while source.is_a?(::Sequel::Dataset)
        source.is_a?(::Sequel::SQL::QualifiedIdentifier) ? "#{source.table}.#{source.column}" : source.to_s
      end

      # @return [Association, nil] nil if the model has no association of that name
      def association(name)
        reflection = model? && model.association_reflection(name)
        reflection && @memo.fetch([model, name]) { Association.new(self, reflection) } || nil
      end

      # @return [Array<Symbol>]
      def associations = model? ? model.associations : []

      # @param table [String, Symbol] of this database or another one of Sequel, with its schema if given
      # @return [Array<Symbol>, nil] nil if there is no such table or view
      def columns_of(table)
        source = table.to_s.split(".").map(&:to_sym).then { |schema, name| name ? ::Sequel.qualify(schema, name) : schema }
        found { |one| one.from(source).columns if one.table_exists?(source) }
      end

      # PostgreSQL only.
      # @return [Boolean]
      def column_of_any_table?(name)
        !found { |one| one.fetch("#{Adapter::COLUMNS} AND attname = ?", name.to_s).first }.nil?
      end

      # @!endgroup

      # Checks out one connection for all statements of the block: each checkout from Sequel's
      # threaded pool lets another thread run.
      # @param _name [String, nil] ignored, because Sequel's log has no names
      # @yieldparam session [Session]
      def session(_name = nil)
        Session.open(database, dialect) { |session| yield session }
      end

      # Only yields: a session ends before its caller's block, so there is no connection to release.
      def apart
        yield
      end

      # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
      def snapshot(&block)
        return yield if database.in_transaction?(server: SERVER)

        database.transaction(server: SERVER, **(dialect.name == :postgres ? { isolation: :repeatable } : {}), &block)
      end

      # @return [Array<Symbol>, nil] the servers of `with_server` for writes and reads; nil without several servers
      def place = (%i[default read_only].map { |server| database.pool.send(:pick_server, server) } if database.sharded?)

      # (see Adapter#within)
      def within(place, &block) = place && database.respond_to?(:with_server) ? database.with_server(*place, &block) : yield

      # Otherwise the workers of a server that loads the application before it forks share these connections and get
      # rows of each other. A database in memory would be lost with its connection.
      def disconnect_idle
        database.disconnect unless database.pool.size.zero? || memory? || database.in_transaction?
      end

      # @return [Boolean]
      def same_database?(other) = other.is_a?(SequelRows) && database.equal?(other.database)

      protected

      # @return [Sequel::Database]
      attr_reader :database

      private

      def model? = model.is_a?(Class)

      # A superclass of resources of several databases may declare what only one of them has.
      # @return [Object, nil] the block's result for this database, else for another one
      def found(&block)
        yield(database) || (::Sequel::DATABASES - [database]).lazy.filter_map { |other| found_in(other, &block) }.first
      end

      def found_in(other)
        yield other
      rescue ::Sequel::Error
        nil # it is closed, or of another kind
      end

      def memory? = dialect.name == :sqlite && database.opts[:database].to_s.match?(/\A\z|:memory:|mode=memory/)

      # Reads instances of a Sequel model, or hashes of a dataset, and preloads associations.
      #
      #   instances = SequelRows.for(MailLog).instances
      #   instances.loaded?(log, :category)   # => false
      class Instances < ObjectRows::Instances
        def loaded?(record, name)
          !record.is_a?(::Sequel::Model) || record.new? || record.class.association_reflection(name).nil? || record.associations.key?(name)
        end

        # @raise [ConfigurationError] for a record of another server, because everything else would be read from this one
        def all?(records)
          return records.all?(Hash) unless @model.is_a?(Class)
          return false unless records.all?(@model)

          server = records.lazy.filter_map { |record| SequelRows.other_server(record) }.first or return true
          raise ConfigurationError, "a record of server #{server.inspect} cannot be rendered here: write the document inside " \
                                    "DB.with_server(#{server.inspect}) { … } (Sequel's extension server_block)"
        end

        # (see ObjectRows::Instances#preload)
        def preload(records, names)
          names.flat_map { |name| name.is_a?(Hash) ? name.to_a : [[name, nil]] }.each do |name, below|
            missing = records.reject { |record| loaded?(record, name) }
            @model.dataset.eager(below ? { name => below } : name).send(:eager_load, missing) if missing.any?
          end
        end

        # @param name [Symbol] an association
        # @return [Boolean] whether preloading finds the same records as lazy loading
        def loads_at_once?(name)
          reflection = @model.association_reflection(name)
          !reflection[:instance_specific] && reflection[:allow_eager] != false && !@adapter.association(name).mixed_types?
        end

        # (see ObjectRows::Instances#preload_where_same)
        def preload_where_same(records, name)
          records.group_by(&:class).each do |model, some|
            instances = model == @model ? self : @adapter.related(model).instances
            instances.preload(some, [name]) if instances.loads_at_once?(name)
          end
        end

        def stored?(records)
          records.all? { |record| record.is_a?(::Sequel::Model) ? record.is_a?(@model) && !record.new? : !@model.is_a?(Class) }
        end
      end

      # Runs SELECTs on Sequel's connection, in the caller's transaction, with Sequel's log and errors.
      #
      #   Session.open(DB, Dialect.for(:sqlite)) { |session| session.rows("SELECT id FROM users") }
      #   # => [[1], [2]], on PostgreSQL a PG::Result
      #
      # Reads from the :read_only server of a sharded database, like a dataset.
      class Session
        include ColumnValues

        # @param database [Sequel::Database]
        # @param dialect [Dialect]
        # @yieldparam session [Session] valid inside the block
        def self.open(database, dialect)
          interrupt = nil
          database.synchronize(SERVER) do |connection|
            yield new(database, dialect, connection)
          rescue Exception => interrupt # rubocop:disable Lint/RescueException, Lint/UselessRescue -- `disconnected` may replace the error
            raise
          ensure
            disconnected(connection) if connection.respond_to?(:finished?)
          end
        rescue ::Sequel::DatabaseDisconnectError => error
          raise interrupt || error
        end

        # Sequel removes a connection from its pool if this error leaves `synchronize`.
        # @raise [Sequel::DatabaseDisconnectError] if an interrupt has closed the connection
        def self.disconnected(connection)
          return unless connection.finished?

          raise ::Sequel::DatabaseDisconnectError, "a read was interrupted and the server did not answer, so its connection was closed"
        end
        private_class_method :disconnected

        def initialize(database, dialect, connection)
          @database = database
          @dialect = dialect
          @connection = connection
        end

        # (see ActiveRecordRows::Session#read)
        def read(queries)
          pipeline = PostgresDriver::Pipeline.new(@connection, queries) if queries.size > 1 && @dialect.overlaps? && direct?
          queries.each do |query|
            query.rows = sent(query.sql) do
              next PostgresDriver.texts(pipeline.result) if pipeline

              run(query.sql, query.ids, query.kept, query.indexed)
            end
          end
        ensure
          Uninterrupted.call { pipeline.close } if pipeline
        end

        # (see ActiveRecordRows::Session#rows)
        def rows(sql, ids = nil, kept: false, indexed: false)
          sent(sql) { run(sql, ids, kept, indexed) }
        end

        def raw
          yield @connection
        end

        private

        def sent(sql, &block)
          @database.log_connection_yield(sql, @connection, &block)
        rescue ::Sequel::Error
          raise
        rescue StandardError => error
          raise error unless Adapter.driver_error?(error)

          raise ::Sequel.convert_exception_class(error, Adapter.connection_lost?(error) ? ::Sequel::DatabaseDisconnectError : ::Sequel::DatabaseError)
        end

        def run(sql, ids, kept, indexed)
          return SqliteStatements.for(@connection).rows(sql, ids && @dialect.bind(ids)) if @dialect.name == :sqlite

          PostgresDriver.rows(@connection, sql, ids, prepared: kept && direct?, indexed: indexed)
        end

        # A connection pooler may not support prepared statements and pipelines.
        def direct? = PostgresStatements.for(@connection).direct?
      end
    end
  end
end

require_relative "sequel_rows/column_types"
require_relative "sequel_rows/enum_names"
require_relative "sequel_rows/result_types"
require_relative "sequel_rows/subquery"
require_relative "sequel_rows/scopes"
require_relative "sequel_rows/association"
require_relative "sequel_rows/siblings"
