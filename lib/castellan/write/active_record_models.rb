# frozen_string_literal: true

module Castellan
  module Write
    # Writes records of an ActiveRecord model. Frozen.
    class ActiveRecordModels
      # PostgreSQL's position in the write-ahead log.
      POSITION = "SELECT pg_current_wal_insert_lsn()::text"
      REPLAYED = "SELECT COALESCE(pg_last_wal_replay_lsn() >= %s::pg_lsn, true)"

      # @return [Class]
      attr_reader :model

      def initialize(model)
        @model = model
        freeze
      end

      # @return [Boolean] whether records have a writer for the attribute or association
      def writer?(name)
        model.attribute_names.include?(name.to_s) || model.method_defined?(:"#{name}=") || model.attribute_aliases.key?(name.to_s)
      end

      # @return [Models::Type] named :serialized if a coder (`serialize`, `store`) makes the value of the column's text
      def type(name)
        name = model.attribute_aliases.fetch(name.to_s, name.to_s)
        column = model.columns_hash[name]
        array = column.respond_to?(:array) && column.array
        type = model.type_for_attribute(name)
        Models::Type.new(serialized?(type) ? :serialized : type.type, array ? true : false, model.defined_enums[name]&.keys,
                         column ? !column.null : false)
      end

      # @return [Boolean] see {Models.exceeds?}
      def exceeds?(name, value)
        column = model.columns_hash[model.attribute_aliases.fetch(name.to_s, name.to_s)]
        !column.nil? && Models.exceeds?(value, (column.limit if %i[string text].include?(column.type)), column.sql_type.to_s)
      end

      # @return [Boolean] whether the column is the lock column of optimistic locking, which must not be NULL
      def locks?(name)
        model.locking_enabled? && model.locking_column == name.to_s
      end

      # If the type cannot read a value, ActiveRecord writes NULL. For collections it fails only when it
      # saves.
      # @return [Boolean] whether the attribute can store the value
      def fits?(name, value)
        name = model.attribute_aliases.fetch(name.to_s, name.to_s)
        return fits_writer?(name, value) unless model.attribute_names.include?(name)

        type = model.type_for_attribute(name)
        read = cast(type, value)
        !read.nil? && [Hash, Array].none? { |collection| collection === type.serialize(read) } # rubocop:disable Style/CaseEquality
      rescue TypeError, ArgumentError, NoMethodError, ::RangeError, ::ActiveRecord::SerializationTypeMismatch
        false
      end

      # @param key [Object] a primary key
      # @return [Object, nil] the record, within the model's default scope
      def find(key)
        model.find_by(model.primary_key => key)
      end

      # @return [Object] a new record
      def build
        model.new
      end

      # @param values [Hash{Symbol => Object}] attributes and associations; to-many associations of a stored
      #   record are written immediately
      def assign(record, values)
        nested, own = values.partition { |name, _| nested(name) }
        own.each do |name, value|
          loading(record, name, &:itself) if model.reflect_on_association(name)&.has_one? # or the writer loads it, if it may
          lock_added(record, name, value) if value.is_a?(Array)
        end
        assign_own(record, own.to_h)
        nested.each { |name, value| assign_nested(record, name, value) }
      end

      # @return [Object] the value to assign for a value of a client's document
      def value_of(_name, value) = value

      # @return [Boolean] false if the record is invalid, a callback aborted, or the database ignored the UPDATE
      def save(record)
        saved = record.save && !ignored?(record, :@_trigger_update_callback)
        touch_now if saved && in_transaction?
        saved
      end

      # @return [Boolean] false if a callback aborted, or the database ignored the DELETE
      def delete(record)
        deleted = record.destroy && !kept?(record)
        touch_now if deleted && in_transaction?
        deleted ? true : false
      end

      # @return [Boolean] whether the record is in the database; a trigger that returns NULL leaves it without a key
      def stored?(record)
        record.persisted? && Array(model.primary_key).none? { |key| record.read_attribute(key).nil? }
      end

      # Locks the row until the end of the transaction, and reloads it.
      # @return [Boolean] false if the row was deleted
      def lock(record)
        record.lock!
        true
      rescue ::ActiveRecord::RecordNotFound
        false
      end

      # @return [Array<Object>] the records of a to-many association
      def members(record, association)
        loading(record, association, &:to_a)
      end

      # @return [Array<Object>, Object, nil] the related records that are stored in the database
      def stored(record, association)
        record.association(association).reset
        loading(record, association) { |found| found.respond_to?(:to_ary) ? found.to_a : found }
      end

      # @return [Array<Object>] the records of an association that are not among the others
      def difference(records, others) = records - others

      # @return [Array<(Symbol, String)>] an attribute, association or :base, and a message without the name
      def problems(record)
        record.errors.map { |error| [error.attribute, error.attribute == :base ? error.message : error.full_message] }
      end

      # @return [Object] all related records as a relation, which builds its conditions only if they are needed; with
      #   `strict_loading`, which forbids to load that, another one
      def related(record, association)
        found = record.association(association)
        record.strict_loading? || found.reflection.strict_loading? ? found.scope : found.reader
      end

      # @return [Array<String>] the columns of this table that hold the foreign key of a to-one association
      def foreign_keys(association)
        reflection = model.reflect_on_association(association)
        reflection&.belongs_to? ? Array(reflection.foreign_key).map(&:to_s) : []
      end

      # Raises if the database does not respond.
      def ping
        connected { |connection| connection.select_value("SELECT 1") }
      end

      # @return [String, nil] why reads cannot use a replica
      def replica_problem
        return "replicas of PostgreSQL alone have versions" unless model.connection_db_config.adapter.to_s.match?(/\Apostg/)

        pool = model.connection_handler.retrieve_connection_pool(model.connection_specification_name, role: ::ActiveRecord.reading_role)
        return if pool

        "#{model} has no connection for the role #{::ActiveRecord.reading_role.inspect}: write connects_to database: { writing: …, " \
          "reading: … } in its abstract class"
      end

      def on_replica(&block)
        ::ActiveRecord::Base.connected_to(role: ::ActiveRecord.reading_role, &block)
      end

      def on_primary(&block)
        ::ActiveRecord::Base.connected_to(role: ::ActiveRecord.writing_role, &block)
      end

      # @return [String] the current position in the primary's write-ahead log
      def position
        connected { |connection| model.uncached { connection.select_value(POSITION) } }
      end

      # @param position [String] see {#position}
      # @return [Boolean] whether the replica has replayed the log to this position; true on a primary
      def replayed?(position)
        connected { |connection| model.uncached { connection.select_value(format(REPLAYED, connection.quote(position))) } }
      end

      # @return [Boolean] whether both models are in the same database
      def same_database?(other)
        other.is_a?(ActiveRecordModels) && other.model.connection_specification_name == model.connection_specification_name
      end

      def transaction(&block)
        connected { |connection| begun(connection, &block) }
      end

      # @return [Boolean] whether a transaction is open; {Transaction.run} uses it to detect one of its caller
      def in_transaction?
        model.connection_pool.active_connection?&.transaction_open? || false
      end

      # @param constraint [String, nil] the name of a unique index
      # @return [Array<String>] the columns of the index
      def index_columns(constraint)
        indexes = connected { |connection| connection.indexes(model.table_name) }
        Array(indexes.find { |index| index.name == constraint }&.columns).map(&:to_s)
      rescue ::ActiveRecord::ConnectionTimeoutError # other threads have them all; the error of the write is sent without its member
        []
      end

      private

      # Without Rails nothing releases a leased connection: a thread of Puma that has written would keep one of the pool.
      def connected(&block) = model.connection_pool.with_connection(&block)

      # Rolls back unless the block returns. ActiveRecord's own `transaction` would commit if `Timeout` leaves
      # the block by `throw`. A lazy BEGIN that is interrupted would leave its transaction open in the pool.
      def begun(connection)
        outer = connection.open_transactions
        transaction = begin_once(connection)
        finished = false
        result = yield
        finished = true
        connection.commit_transaction
        result
      rescue Exception => error # rubocop:disable Lint/RescueException -- rolled back and raised again
        error.extend(transaction&.state&.committed? ? Transaction::Committed : Transaction::Unconfirmed) if finished
        give_up(connection, transaction, error) if finished && transaction && !transaction.state.completed?
        raise
      ensure
        (roll_back(connection, nil) while connection.open_transactions > outer) if outer && !finished
        discard_lost(connection) if !finished && (transaction.nil? || lost?(error))
      end

      # ActiveRecord replaces a connection that is lost before the first write. If it fails to, and then succeeds (a pooler
      # whose server is away), it forgets the transaction: each record would be committed by itself.
      def begin_once(connection)
        connection.begin_transaction(_lazy: false).tap do |transaction|
          transaction.dirty! # the connection is not replaced from here on
          next if connection.current_transaction.equal?(transaction)

          raise ::ActiveRecord::ConnectionFailed, "the connection was lost while the transaction began"
        end
      end

      # Models may forbid lazy loading (`strict_loading`), but a write must read the related records.
      def loading(record, association)
        record.association(association).send(:skip_strict_loading) { yield record.public_send(association) }
      end

      # The types of gems raise errors of their own, such as StoreModel::Types::CastError.
      def cast(type, value)
        type.cast(value)
      rescue ::ActiveRecord::ActiveRecordError
        raise
      rescue StandardError
        nil
      end

      # Whether the writer of `has_secure_password` or `accepts_nested_attributes_for` takes the value.
      def fits_writer?(name, value)
        return value.is_a?(String) || !model.method_defined?(:"authenticate_#{name}") unless (association = nested(name))
        return value.is_a?(Hash) unless model.reflect_on_association(association).collection?

        value = value.key?("id") ? [value] : value.values if value.is_a?(Hash)
        value.is_a?(Array) && value.all?(Hash)
      end

      # @return [Symbol, nil] the association whose records the writer of `accepts_nested_attributes_for` changes
      def nested(name)
        association = name.to_s.delete_suffix("_attributes").to_sym
        association if name.end_with?("_attributes") && model.nested_attributes_options.key?(association)
      end

      # @raise [NotSaved] if a writer such as `tag_ids=` finds no record with an id that the client names
      def assign_own(record, values)
        record.assign_attributes(values)
      rescue ::ActiveRecord::RecordNotFound
        writers = values.keys.grep(/_ids?\z/) - model.attribute_names.map(&:to_sym)
        raise if writers.empty?

        record.errors.add(writers.one? ? writers.first : :base, "must name records that exist")
        raise NotSaved, record
      end

      # @raise [NotSaved] if a related record has no such attribute, or there is no record with the id
      def assign_nested(record, name, value)
        record.public_send(:"#{name}=", value)
      rescue ::ActiveModel::UnknownAttributeError, ::ActiveRecord::RecordNotFound, ::ActiveRecord::NestedAttributes::TooManyRecords,
             ArgumentError
        record.errors.add(name, "is invalid")
        raise NotSaved, record
      end

      # ActiveRecord touches the records of `touch: true` in front of the COMMIT, but the response is rendered before, and
      # must have their new columns and entity tag. Of several instances of one record, it touches the first.
      def touch_now
        connection = model.connection_pool.active_connection?
        late = connection.current_transaction.records.to_a.uniq.select { |one| one.persisted? && one.send(:has_defer_touch_attrs?) }
        late.each { |one| one.send(:touch_deferred_attributes) }
        touch_now if late.any? # their owners
      end

      # A trigger or row level security may make a statement change no row, without an error. A commit resets the variable.
      def ignored?(record, changed) = record.instance_variable_get(changed) == false && in_transaction?

      # A callback may have deleted the row before, such as that of a `belongs_to` with `dependent: :destroy`.
      def kept?(record)
        ignored?(record, :@_trigger_destroy_callback) &&
          model.unscoped.exists?(Array(model.primary_key).to_h { |key| [key, record.read_attribute(key)] })
      end

      # ActiveRecord wraps types (encrypted, normalized).
      def serialized?(type)
        return true if type.respond_to?(:coder)

        type.respond_to?(:cast_type) && serialized?(type.cast_type)
      end

      # A record that moves to a has_many association changes the counter caches of two owners. Locks its row and
      # reads it again, because another transaction may have moved it.
      def lock_added(record, association, others)
        reflection = model.reflect_on_association(association)
        return unless reflection&.macro == :has_many && reflection.options[:through].nil?

        (others - members(record, association)).each { |other| lock(other) unless other.has_changes_to_save? }
      end

      # A connection that was lost during COMMIT is discarded, because ActiveRecord would not open it again for this thread.
      def give_up(connection, transaction, error)
        error.is_a?(::ActiveRecord::ConnectionFailed) ? connection.throw_away! : roll_back(connection, transaction)
      end

      # A thread without an executor keeps its connection, and ActiveRecord opens none again whose driver's connection was
      # used: BEGIN would fail in each further request. A caller's transaction ends with the caller.
      def discard_lost(connection)
        connection.throw_away! unless connection.transaction_open?
      end

      # ActiveRecord counts a lost connection as a successful rollback.
      def lost?(error)
        error.is_a?(::ActiveRecord::ConnectionFailed) || error.is_a?(::ActiveRecord::ConnectionNotEstablished)
      end

      # If the rollback fails, discards the connection, which ends the transaction. For a connection that Castellan has
      # closed after an interrupt, ActiveRecord raises the driver's error, and would use it again for each SELECT.
      def roll_back(connection, transaction)
        connection.rollback_transaction(transaction)
      rescue StandardError => error
        connection.throw_away!
        raise unless error.is_a?(::ActiveRecord::ActiveRecordError) || DatabaseError.kind(error) == :away
      end
    end
  end
end
