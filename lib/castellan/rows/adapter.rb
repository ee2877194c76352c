# frozen_string_literal: true

module Castellan
  module Rows
    # Implements what the adapters of ActiveRecord and Sequel share. {Linter} checks an adapter's methods:
    #
    # | method | returns |
    # |---|---|
    # | `model`, `dialect` | the model or dataset, and the {Dialect} of its database |
    # | `types`, `scopes`, `instances` | coders and SQL of columns; {Scopes}; records |
    # | `table`, `columns`, `primary_key`, `associations` | the schema, to check declarations |
    # | `columns_of(table)`, `column_of_any_table?(name)` | the schema of other tables, also of the main database |
    # | `association(name)` | how an association is read as rows |
    # | `at(path)`, `related(object)` | the adapter at the end of a path, or of another model |
    # | `along(path)` | the associations of a path |
    # | `stable_path?(path)`, `loaded_classes(plan)` | whether SQL can be reused, and until when |
    # | `same_database?(other)` | whether one statement can read both |
    # | `fetch(plan, scope, viewer:, scopes:, beside:)` | {Plan::RowSet} |
    # | `session(name = nil) {}` | yields a session on one connection |
    # | `apart {}`, `snapshot {}` | runs the block without keeping a connection; in one transaction |
    # | `place`, `within(place) {}` | the shard, server or search path of this thread; runs the block there |
    # | `disconnect_idle` | closes the connections that nobody uses, before a server forks |
    # | `json(value)` | JSON text |
    module Adapter
      NO_CLASSES = [].freeze
      private_constant :NO_CLASSES
      # PostgreSQL's columns of all tables
      COLUMNS = "SELECT 1 AS found FROM pg_catalog.pg_attribute WHERE attnum > 0 AND NOT attisdropped"

      # @return [Boolean] whether the pg or the sqlite3 gem raised it
      def self.driver_error?(error)
        return true if defined?(::PG::Error) && error.is_a?(::PG::Error)

        defined?(::SQLite3::Exception) && error.is_a?(::SQLite3::Exception) || false
      end

      # @param error [StandardError] a driver's error
      # @return [Boolean] whether the connection is lost
      def self.connection_lost?(error)
        (defined?(::PG::ConnectionBad) && (error.is_a?(::PG::ConnectionBad) || error.is_a?(::PG::UnableToSend))) ||
          error.message.match?(/closed database|connection is closed/i)
      end

      # @return [Class, Sequel::Dataset] the model, or the dataset if it has no model
      # @return [Dialect]
      # @return [ActiveRecordRows::ColumnTypes, SequelRows::ColumnTypes]
      # @return [Scopes]
      # @return [ObjectRows::Instances]
      attr_reader :model, :dialect, :types, :scopes, :instances

      # @param scope [ActiveRecord::Relation, Sequel::Dataset, Ids::Chosen, Records]
      # @param viewer [Object, nil] passed to the blocks that take it
      # @param scopes [ViewerScopes] which related rows the viewer may see; does not narrow `scope` itself
      # @param beside [Reading::Query, nil] a query for the same round trip; it
      #   runs only if `scope` needs a SELECT
      # @return [Plan::RowSet]
      # @raise [ActiveRecord::StatementInvalid, Sequel::DatabaseError] as the ORM would
      def fetch(plan, scope, viewer: nil, scopes: ViewerScopes.new(viewer), beside: nil)
        classes = loaded_classes(plan)
        key = classes.empty? ? @reader : [@reader, *classes]
        plan.derive(key) { Reader.new(plan, self) }.now(scopes).call(scope, viewer: viewer, scopes: scopes, beside: beside)
      end

      # @return [Array<Integer>] differs once a class was loaded that may
      #   change how the plan's columns are read
      def loaded_classes(_plan) = NO_CLASSES

      # @param object [Class, ActiveRecord::Relation, Sequel::Dataset, Symbol, nil] the related model or table
      # @return [Object] its adapter; nil has one for plain objects
      def related(object)
        return ObjectRows.new if object.nil?

        other = self.class.model_of(Rows.named(object))
        other == model ? self : @memo.fetch(other) { self.class.new(other, @memo) }
      end

      # @return [Object] the adapter at the end of a path of to-one associations
      def at(path) = path.reduce(self) { |adapter, name| adapter.association(name).adapter }

      # @param now (see Association#kept?)
      # @return [Boolean] whether every association of the path is stable, so that its SQL is constant
      def stable_path?(path, now = NO_CLASSES)
        along(path).all? { |association| association.kept?(now) }
      end

      # @return [Array<Association>] one for each step of the path
      def along(path)
        adapter = self
        path.map { |name| adapter.association(name).tap { |association| adapter = association.adapter } }
      end

      # @return [Object, nil] the shard, server or search path that the application has chosen for this thread
      def place = nil

      # Runs the block where a document was made: its body is read after the middleware has switched back.
      # @param _place [Object, nil] the result of {#place}
      def within(_place) = yield

      # Does nothing unless an ORM lets forked processes share a connection.
      def disconnect_idle = nil

      # @return [String] JSON text
      def json(value) = JSONValue.text(value)

      private

      def start(model, memo)
        @model = model
        @memo = memo
        @reader = model.is_a?(Class) ? :"reader of #{model.object_id}" : [:reader, model] # a Symbol is a faster key
      end
    end
  end
end
