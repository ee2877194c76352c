# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Describes how rows read one association of a Sequel model. Frozen.
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
          @model = reflection.associated_class if MACROS.key?(reflection[:type])
          @owner_key = single_key
          @reason = find_reason
          freeze
        end

        def to_many?
          macro == :has_many
        end

        # @return [LazyStatement]
        def lazy
          LazyStatement.new(dataset_of({ owner_key => key_value }), fallback_order: fallback_order)
        end

        # (see ActiveRecordRows::Association#links)
        def links(id, read: false) # rubocop:disable Lint/UnusedMethodArgument
          [lazy, adapter.types.qualified(id), false]
        end

        # @return [Boolean] whether the SQL is constant
        def stable?
          model.simple_table && @reflection.values_at(:block, :conditions).none? && !@reflection[:instance_specific] ? true : false
        end

        # @return [Boolean] false, because indexes are unknown here
        def indexed?
          false
        end

        # @return [Boolean] whether it is a one_to_many
        def direct?
          @reflection[:type] == :one_to_many
        end

        # (see ActiveRecordRows::Association#foreign_key_of?)
        def foreign_key_of?(id)
          @reflection[:type] == :many_to_one && stable? && @reflection.primary_keys == [id]
        end

        # Sequel's eager loading compares keys with Ruby's equality, where 7 is not "7".
        # @return [Boolean] whether the owner's key is compared with a column of another type
        def mixed_types?
          own = @owner.types.type(owner_key)
          other = type_of_compared
          !own.nil? && !other.nil? && own != other
        end

        private

        # nil if the type is unknown.
        def type_of_compared
          case @reflection[:type]
          when :many_to_one then adapter.types.type(@reflection.primary_key)
          when :one_to_many, :one_to_one then adapter.types.type(@reflection[:key])
          when :many_to_many, :one_through_one then @owner.types.type_in(@reflection[:join_table], @reflection[:left_key])
          when :many_through_many, :one_through_many then @owner.types.type_in(*@reflection[:through].first.values_at(:table, :left))
          end
        end

        # Sequel returns no associations for an object without a primary key.
        def dataset_of(values)
          keys = Array(@owner.model.primary_key).to_h { |column| [column, KEY_PROBES[@owner.types.type(column)]] }
          @owner.model.call(keys.merge(values)).public_send(@reflection.dataset_method)
        end

        def key_value
          OwnerKey.value(@owner.types.type(owner_key))
        end

        def fallback_order
          joined = [@reflection[:join_table]].compact
          keys = joined.filter_map { |table| (key = @owner.types.key_of(table)) && ::Sequel.qualify(table, key) }
          target = model.primary_key
          target.is_a?(Symbol) ? keys << ::Sequel.qualify(model.dataset.first_source_alias, target) : keys
        end

        def single_key
          keys = Array(@reflection[:type] == :many_to_one ? @reflection[:key] : key_of_owner)
          keys.first if keys.size == 1
        end

        def key_of_owner
          @reflection[:left_primary_key] || @reflection[:primary_key] || @owner.model.primary_key
        end

        def find_reason
          if @owner.dialect.reason then @owner.dialect.reason
          elsif model.nil? then "it is a #{@reflection[:type]} association"
          elsif owner_key.nil? then "its key has several columns"
          elsif key_value.nil? then "the type of #{owner_key} (#{@owner.types.type(owner_key)}) cannot be a key here"
          elsif mixed_types? then "#{owner_key} and the column that is compared with it are of different types"
          elsif @reflection[:no_dataset_method] then "it has no dataset method"
          else reason_of_dataset
          end
        end

        def reason_of_dataset
          bare = dataset_of({ owner_key => key_value }).sql
          if !OwnerKey.in?(bare) then "its dataset does not compare #{owner_key} with a value"
          elsif dataset_of(probe).sql != bare then "its dataset looks at the owner"
          end
        end

        def probe
          @owner.columns.to_h { |column| [column, PROBES[@owner.types.type(column)]] }.merge(owner_key => key_value)
        end

        # Builds the SQL of an association's dataset, for the owner of {OwnerKey}.
        #
        #   lazy = LazyStatement.new(dataset, fallback_order: [Sequel.qualify(:roles, :id)])
        #   lazy.sql("`roles`.`id`")   # => SELECT `roles`.`id` FROM `roles` … WHERE (… = 1847362915) ORDER BY …
        #
        # Orders an association without an order by its keys, so that documents are deterministic.
        class LazyStatement
          def initialize(dataset, fallback_order:)
            @dataset = dataset.naked
            @fallback = fallback_order
            freeze
          end

          # (see ActiveRecordRows::Association#sql)
          def sql(list, single: false)
            (single ? first : ordered).select(::Sequel.lit(list)).sql
          end

          # (see ActiveRecordRows::Association#whole_sql)
          def whole_sql
            ordered.sql
          end

          # (see ActiveRecordRows::Association::LazyStatement#first_rows_sql)
          def first_rows_sql(key, list, last)
            rows = @dataset.unlimited.select(::Sequel.lit("DISTINCT ON (#{key}) #{list}"))
            rows.order(::Sequel.lit(key), *@dataset.opts[:order], ::Sequel.lit(last)).sql
          end

          # @return [String] SELECT of all rows, without an order
          def rows_sql(list)
            @dataset.unlimited.unordered.select(::Sequel.lit(list)).sql
          end

          # @return [Boolean] whether the first row of many owners can be read at once
          def first_of_many?
            @dataset.opts.values_at(:offset, :distinct, :group, :having, :compounds, :lock).none?
          end

          # @return [Boolean] whether it joins tables
          def joins?
            @dataset.joined_dataset?
          end

          # (see ActiveRecordRows::Association#plain?)
          def plain?
            @dataset.opts.values_at(:limit, :offset, :distinct, :group, :having, :compounds).none?
          end

          private

          # The first row is also the first distinct row; with DISTINCT, PostgreSQL requires the order columns
          # in the SELECT list.
          def first
            @dataset.opts[:offset] || @dataset.opts[:distinct]&.any? ? @dataset.limit(1) : @dataset.clone(distinct: nil).limit(1)
          end

          def ordered
            plain? && @dataset.opts[:order].nil? && @fallback.any? ? @dataset.order(*@fallback) : @dataset
          end
        end
      end
    end
  end
end
