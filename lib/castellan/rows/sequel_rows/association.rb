# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Describes how one association of a Sequel model is read as rows. Frozen.
      class Association < Rows::Association
        MACROS = { many_to_one: :belongs_to, one_to_one: :has_one, one_through_one: :has_one, one_to_many: :has_many,
                   many_to_many: :has_many, many_through_many: :has_many, one_through_many: :has_one }.freeze
        # Values for the owner's other columns. If they change the SQL, the dataset depends on its owner.
        PROBES = { integer: 1_847_000_001, string: "castellan probe", boolean: true }.freeze
        # Values for the owner's primary key, if the association starts from another column.
        KEY_PROBES = { integer: 1_846_000_001, string: "castellan key", uuid: "c0de0000-0000-4000-8000-000000000000" }.freeze
        private_constant :MACROS, :PROBES, :KEY_PROBES

        def initialize(owner, reflection)
          @owner = owner
          @reflection = reflection
          @name = reflection[:name]
          @macro = MACROS[reflection[:type]] || (reflection.returns_array? ? :has_many : :has_one)
          @model = related_class if MACROS.key?(reflection[:type])
          @owner_key = single_key
          @reason = find_reason
          freeze
        end

        def to_many? = macro == :has_many

        # @return [LazyStatement]
        def lazy = LazyStatement.new(adapter.scopes, dataset_of({ owner_key => key_value }).naked, keys_in_order)

        # @return [Boolean] whether the SQL is the same in every request
        def stable?
          return false if !model&.simple_table || adapter.scopes.rewritten?

          @reflection.values_at(:block, :conditions, :instance_specific).none?
        end

        # Sequel keeps the dataset of an association without a block; its conditions may still contain a `Sequel.delay`.
        # (see Rows::Association#identity)
        def identity
          return if model.nil? || adapter.scopes.rewritten?

          kept = @reflection.associated_dataset
          dataset = @reflection.values_at(:block, :instance_specific, :eager_graph).none? ? kept : dataset_of({ owner_key => key_value })
          found = Scopes::ScopeIdentity.of_association(dataset, kept, model.dataset)
          found if found && Scopes::Identity.small?(found)
        rescue StandardError
          nil # the block raises when the SQL is built, too
        end

        # @return [Boolean] whether the association is a one_to_many
        def direct? = @reflection[:type] == :one_to_many && of_keys?

        # (see Rows::Association#of_keys?)
        def of_keys? = !@reflection[:orig_opts].key?(:dataset)

        # (see ActiveRecordRows::Association#foreign_key_of?)
        def foreign_key_of?(id) = @reflection[:type] == :many_to_one && stable? && @reflection.primary_keys == [id]

        # @return [Array<Symbol>] the columns of a many_to_one
        def foreign_keys = Array(@reflection[:key])

        # Sequel's eager loading compares keys with Ruby's equality, where 7 is not "7".
        # @return [Boolean] whether the owner's key is compared with a column of another type
        def mixed_types?
          return false if model.nil?

          own = @owner.types.type(owner_key)
          other = type_of_compared
          !own.nil? && !other.nil? && own != other
        end

        private

        # A dataset of the application, without a class, returns records of several classes (a polymorphic association).
        def related_class
          @reflection.associated_class
        rescue NameError
          raise if of_keys?
        end

        def type_of_compared
          case @reflection[:type]
          when :many_to_one then adapter.types.type(@reflection.primary_key)
          when :one_to_many, :one_to_one then adapter.types.type(@reflection[:key])
          when :many_to_many, :one_through_one then @owner.types.type_in(@reflection[:join_table], @reflection[:left_key])
          when :many_through_many, :one_through_many then @owner.types.type_in(*@reflection[:through].first.values_at(:table, :left))
          end
        end

        # Sequel returns no associations of an object without a primary key.
        # @param read [Array<Symbol>] receives the other columns of the owner that the association reads
        def dataset_of(values, read = [])
          keys = Array(@owner.model.primary_key).to_h { |column| [column, KEY_PROBES[@owner.types.type(column)]] }
          all = Hash.new { |_, column| read << column && nil }.merge!(keys, values)
          all.transform_values!(&:dup) # the plugin force_encoding changes them
          owner = @owner.model.call(all)
          read.clear # of hooks and plugins
          SequelRows.without_parameters(owner.public_send(@reflection.dataset_method))
        end

        def key_value = OwnerKey.value(@owner.types.type(owner_key))

        def keys_in_order
          table = @reflection[:join_table]
          key = @owner.types.key_of(table) if table
          target = model.primary_key
          [key && ::Sequel.qualify(table, key), (::Sequel.qualify(model.dataset.first_source_alias, target) if target.is_a?(Symbol))]
        end

        def single_key
          keys = Array(@reflection[:type] == :many_to_one ? @reflection[:key] : key_of_owner)
          keys.first if keys.size == 1
        end

        def key_of_owner = @reflection[:left_primary_key] || @reflection[:primary_key] || @owner.model.primary_key

        def find_reason
          if @owner.dialect.reason then @owner.dialect.reason
          elsif model.nil? then reason_of_class
          elsif adapter.dialect.reason then adapter.dialect.reason # the related model is in another database
          elsif owner_key.nil? then "its key has several columns"
          elsif key_value.nil? then "the type of #{owner_key} (#{@owner.types.type(owner_key)}) cannot be a key here"
          elsif mixed_types? then "#{owner_key} and the column that is compared with it are of different types"
          elsif @reflection[:no_dataset_method] then "it has no dataset method"
          else reason_of_dataset
          end
        end

        def reason_of_class
          MACROS.key?(@reflection[:type]) ? "there is no class #{@reflection[:class_name]}" : "it is a #{@reflection[:type]} association"
        end

        def reason_of_dataset
          dataset = dataset_of({ owner_key => key_value }, read = [])
          bare = dataset.sql
          if read.any? || dataset_of(probe).sql != bare then "its dataset looks at the owner"
          elsif !OwnerKey.in?(bare) then "its dataset does not compare #{owner_key} with a value"
          elsif owner_key != @owner.primary_key && adapter.scopes.either?(dataset)
            "its OR would also find records where #{owner_key} is NULL" # for which Sequel does not query
          end
        rescue ::Sequel::DatabaseError, ::Sequel::PoolTimeout # quoting may need a connection
          raise
        rescue StandardError # of the application's code, which the other columns of the owner are missing
          "its dataset looks at the owner"
        end

        def probe
          @owner.columns.to_h { |column| [column, PROBES[@owner.types.type(column)]] }.merge(owner_key => key_value)
        end
      end
    end
  end
end
