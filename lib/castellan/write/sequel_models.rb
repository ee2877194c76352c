# frozen_string_literal: true

module Castellan
  module Write
    # Writes records of a Sequel model, with the methods of {ActiveRecordModels}. Frozen.
    class SequelModels
      # PostgreSQL's types that Sequel does not name, or names only with an extension.
      CHECKED = { "uuid" => :uuid, "hstore" => :hstore }.freeze
      # The methods of the extension pg_json that make a JSON value of a text.
      WRAPPERS = { json: :pg_json_wrap, jsonb: :pg_jsonb_wrap }.freeze
      # Errors of the plugin nested_attributes for values that do not fit.
      REFUSED = %w[Sequel::Error Sequel::MassAssignmentRestriction Sequel::InvalidValue].freeze
      private_constant :CHECKED, :WRAPPERS, :REFUSED

      # @return [Class]
      attr_reader :model

      def initialize(model)
        @model = model
        freeze
      end

      def writer?(name)
        model.method_defined?(:"#{name}=") || (model.association_reflection(name) ? true : false)
      end

      def type(name)
        return Models::Type.new if serialized?(name)

        column = model.db_schema&.fetch(name.to_sym, nil) || {}
        database_type = column[:db_type].to_s
        type = CHECKED.fetch(database_type, column[:type])
        Models::Type.new(type, database_type.end_with?("[]"), names_of(name)&.keys || column[:enum_values],
                         column[:allow_null] == false)
      end

      def exceeds?(name, value)
        column = model.db_schema&.fetch(name.to_sym, nil)
        !column.nil? && Models.exceeds?(value, column[:max_length], column[:db_type].to_s)
      end

      def locks?(name)
        model.respond_to?(:lock_column) && model.lock_column == name.to_sym
      end

      # If Sequel does not know a type, PostgreSQL can read it only from text.
      # @return [Boolean] whether the attribute can store the value
      def fits?(name, value)
        return fits_nested?(name, value) if nested(name)

        column = model.db_schema&.fetch(name.to_sym, nil)
        return true if serialized?(name) || column.nil? || names_of(name)
        return fits_array?(column, value) if column[:db_type].to_s.end_with?("[]")
        return true if %i[json jsonb hstore].include?(column[:type])
        return false unless value.is_a?(String) || AttributeType.known?(column[:type]) || model.db.database_type != :postgres

        cast = model.db.typecast_value(column[:type], value)
        !cast.nil? && !cast.is_a?(Hash) && !cast.is_a?(Array)
      rescue ::Sequel::InvalidValue, TypeError, ArgumentError, ::RangeError
        false
      end

      # The class's own `with_pk` returns a frozen record with the plugin static_cache.
      def find(key)
        model.dataset.with_pk(key)
      end

      def build
        model.new
      end

      def assign(record, values)
        values.each do |name, value|
          reflection = model.association_reflection(name)
          if nested(name) then assign_nested(record, name, value)
          elsif reflection.nil? || reflection[:type] == :many_to_one
            record.modified! unless reflection || model.columns.include?(name.to_sym) # hooks may write the value of a virtual attribute
            record.public_send(:"#{name}=", value)
          elsif record.new? # the other rows need its key
            (record.instance_variable_get(:@castellan_members) || record.instance_variable_set(:@castellan_members, {}))[name] = value
          else
            link(record, name, value)
          end
        end
      end

      # Sequel would parse a text as JSON: "{}" would become an object. The names of the plugin enum are symbols.
      def value_of(name, value)
        return value.to_sym if value.is_a?(String) && names_of(name)

        value.is_a?(String) && !serialized?(name) ? json_text(model.db_schema&.dig(name.to_sym, :type), value) : value
      end

      # Writes the changed columns only: others may be generated, hold values that Ruby cannot hold (a JSON number of
      # 20 digits), or have been counted by a trigger or a hook since the record was read.
      def save(record)
        saved = unchanged?(record) || (record.save(raise_on_failure: false, changed: true) ? true : false)
        members = record.instance_variable_defined?(:@castellan_members) && record.remove_instance_variable(:@castellan_members)
        members.each { |name, others| link(record, name, others) } if saved && members
        saved
      end

      # Without arguments, because a model may override `destroy` and take none.
      def delete(record)
        record.destroy ? true : false
      rescue ::Sequel::HookFailed
        false
      end

      def stored?(record)
        !record.new? && record.exists?
      end

      def lock(record)
        record.lock!
        true
      rescue ::Sequel::NoExistingObject
        false
      end

      def members(record, association)
        record.public_send(association, reload: true)
      end
      alias stored members

      # Compares keys: Sequel's `==` compares all values, also columns that an association's `select` adds.
      def difference(records, others)
        keys = others.to_h { |other| [identity(other), true] }
        records.reject { |record| keys.key?(identity(record)) }
      end

      def problems(record)
        record.errors.flat_map { |names, messages| Array(names).product(Array(messages)).map { |name, text| [name, "#{name} #{text}"] } }
      end

      def related(record, association)
        record.public_send(model.association_reflection(association)[:dataset_method])
      end

      def foreign_keys(association)
        reflection = model.association_reflection(association)
        reflection && reflection[:type] == :many_to_one ? Array(reflection[:key]).map(&:to_s) : []
      end

      def ping
        model.db.get(1)
      end

      def replica_problem
        return "replicas of PostgreSQL alone have versions" unless model.db.database_type == :postgres
        return "connect with servers: { read_only: { … } }" unless model.db.servers.include?(:read_only)

        "write DB.extension(:server_block), which sends reads to the primary" unless model.db.respond_to?(:with_server)
      end

      # Does nothing, because Sequel reads from the server :read_only by default.
      def on_replica
        yield
      end

      # Reads from the primary, too.
      def on_primary(&block)
        model.db.with_server(:default, &block)
      end

      def position
        model.db.fetch(ActiveRecordModels::POSITION).single_value!
      end

      def replayed?(position)
        model.db.fetch(format(ActiveRecordModels::REPLAYED, model.db.literal(position))).single_value!
      end

      def same_database?(other)
        other.is_a?(SequelModels) && other.model.db.equal?(model.db)
      end

      def transaction(&block)
        on_one_server { committing(&block) }
      end

      def in_transaction?
        model.db.in_transaction?
      end

      def index_columns(constraint)
        Array(model.db.indexes(model.table_name).dig(constraint&.to_sym, :columns)).map(&:to_s)
      end

      private

      # Sequel would write a row of NULLs for an object, because it looks for symbols in it.
      def fits_array?(column, value)
        column[:db_type].match?(/\A(?:json|hstore)/) || [value].flatten.none?(Hash)
      end

      # The plugin optimistic_locking would count a save without changes, which makes the lock columns of other clients old.
      def unchanged?(record) = model.respond_to?(:lock_column) && !record.modified?

      # @return [Hash, nil] the association whose records the writer of the plugin nested_attributes changes
      def nested(name)
        reflection = model.association_reflection(name.to_s.delete_suffix("_attributes").to_sym) if name.end_with?("_attributes")
        reflection if reflection&.key?(:nested_attributes)
      end

      def fits_nested?(name, value)
        return value.is_a?(Hash) unless nested(name).returns_array?

        value = value.values if value.is_a?(Hash)
        value.is_a?(Array) && value.all?(Hash)
      end

      # @raise [NotSaved] if a related record has no such column, or there is no record with the key
      def assign_nested(record, name, value)
        raise ::Sequel::Error if value.nil? && !nested(name)[:nested_attributes][:reject_nil]

        record.public_send(:"#{name}=", value)
      rescue ::Sequel::Error => error
        raise unless REFUSED.include?(error.class.name) # others are those of the database

        record.errors.add(name, "is invalid")
        raise NotSaved, record
      end

      # Reads from the server of the transaction: :read_only does not show its changes.
      def on_one_server(&block)
        return yield unless model.db.respond_to?(:with_server) && model.db.sharded?

        model.db.with_server(model.db.pool.send(:pick_server, :default), &block)
      end

      # Rolls back unless the block returns. Sequel would commit if `throw` leaves the block, and return nil after a
      # Sequel::Rollback.
      def committing
        committed = finished = false
        model.db.transaction(savepoint: true, rollback: :reraise) do
          model.db.after_commit { committed = true } # must be the first callback
          result = yield
          finished = true
          result
        ensure
          model.db.rollback_on_exit(savepoint: true) unless finished
        end
      rescue StandardError => error
        error.extend(committed ? Transaction::Committed : Transaction::Unconfirmed) if finished
        raise
      end

      def names_of(name) = Rows::SequelRows::EnumNames.of(model, name.to_sym)

      # Whether the plugin serialization stores any value as text.
      def serialized?(name)
        model.respond_to?(:serialization_map) && model.serialization_map.key?(name.to_sym)
      end

      def json_text(type, text)
        wrapper = WRAPPERS[type] if ::Sequel.respond_to?(:pg_json_wrap) && model.db.database_type == :postgres
        wrapper ? ::Sequel.public_send(wrapper, text) : text
      end

      def link(record, association, others)
        return replace(record, association, others) if model.association_reflection(association).returns_array?

        lock(others) if others && !others.new?
        record.public_send(:"#{association}=", others)
      end

      def replace(record, association, others)
        present = locked(record, association, members(record, association), others)
        change(record, association, :remove_method, difference(present, others))
        change(record, association, :add_method, difference(others, present))
      end

      # Sequel saves all columns of a record that it adds to or removes from a one_to_many association. Locks these
      # rows and reads them again, so that no change of another transaction is lost.
      # @return [Array<Object>] the present members
      def locked(record, association, present, others)
        return present unless model.association_reflection(association)[:type] == :one_to_many

        difference(others, present).each(&:lock!)
        read = difference(present, others).select { |other| lock(other) }.to_h { |other| [identity(other), other] }
        members(record, association).map { |other| read.fetch(identity(other), other) }
      end

      def identity(record) = record.pk || record.values

      def change(record, association, method, others)
        others.each { |other| record.public_send(model.association_reflection(association)[method], other) }
      end
    end
  end
end
