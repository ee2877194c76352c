# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Describes how rows read one association of a Sequel model. Frozen.
      #
      #   association = SequelRows.for(MailLog).association(:category)
      #   association.macro     # => :belongs_to
      #   association.model     # => Category
      #
      # An association that SQL cannot read (a block or `dataset:` that depends on its owner, keys of several
      # columns) has a {#reason} and is read through models.
      class Association
        MACROS = { many_to_one: :belongs_to, one_to_one: :has_one, one_through_one: :has_one, one_to_many: :has_many,
                   many_to_many: :has_many, many_through_many: :has_many, one_through_many: :has_one }.freeze
        # Values for the owner's other columns. If they change the SQL, the dataset depends on its owner.
        PROBES = { integer: 1_847_000_001, string: "castellan probe", boolean: true }.freeze
        # Values for the owner's primary key, if the association starts from another column.
        KEY_PROBES = { integer: 1_846_000_001, string: "castellan key", uuid: "c0de0000-0000-4000-8000-000000000000" }.freeze
        private_constant :MACROS, :PROBES, :KEY_PROBES

        # @return [Symbol]
        # @return [Symbol] :has_many, :has_one or :belongs_to
        # @return [Class] the related model
        # @return [Symbol] the owner's column that the association starts from
        # @return [String, nil] why the association cannot be read as rows
        attr_reader :name, :macro, :model, :owner_key, :reason

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

        # @param relationship [Resource::Relationship] a relationship of this association
        # @return [String, nil] why it cannot be read as rows
        def reason_for(relationship)
          composite = relationship.definitions.find { |definition| definition.id_column.is_a?(Array) }
          return ModelReasons.of_id(composite) if composite
          return reason unless relationship.polymorphic?

          reason_for_several(relationship)
        end

        # @param relationship [Resource::Relationship]
        # @return [Boolean]
        def rows?(relationship)
          reason_for(relationship).nil?
        end

        # @return [Boolean]
        def to_many?
          macro == :has_many
        end

        # @return [SequelRows] of the related model
        def adapter
          @owner.related(model)
        end

        # @return [LazyStatement]
        def lazy
          LazyStatement.new(dataset_of({ owner_key => key_value }), fallback_order: fallback_order)
        end

        # @param id [Symbol] the related resource's id column
        # @return [Array(LazyStatement, String, Boolean)] see {ActiveRecordRows::Association#links}
        def links(id, read: false) # rubocop:disable Lint/UnusedMethodArgument
          [lazy, adapter.qualified(id), false]
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

        # @param id [Symbol] the related resource's id column
        # @return [Boolean] whether the owner's foreign key is that id; false for a filtered model
        def foreign_key_of?(id)
          @reflection[:type] == :many_to_one && stable? && @reflection.primary_keys == [id]
        end

        # Sequel's eager loading compares keys with Ruby's equality, where 7 is not "7".
        # @return [Boolean] whether the owner's key is compared with a column of another type
        def mixed_types?
          own = @owner.type(owner_key)
          other = type_of_compared
          !own.nil? && !other.nil? && own != other
        end

        private

        # nil if the type is unknown.
        def type_of_compared
          case @reflection[:type]
          when :many_to_one then adapter.type(@reflection.primary_key)
          when :one_to_many, :one_to_one then adapter.type(@reflection[:key])
          when :many_to_many, :one_through_one then @owner.type_in(@reflection[:join_table], @reflection[:left_key])
          when :many_through_many, :one_through_many then @owner.type_in(*@reflection[:through].first.values_at(:table, :left))
          end
        end

        def reason_for_several(_relationship)
          "its records are of several resources"
        end

        # Sequel returns no associations for an object without a primary key.
        def dataset_of(values)
          keys = Array(@owner.model.primary_key).to_h { |column| [column, KEY_PROBES[@owner.type(column)]] }
          @owner.model.call(keys.merge(values)).public_send(@reflection.dataset_method)
        end

        def key_value
          OwnerKey.value(@owner.type(owner_key))
        end

        def fallback_order
          joined = [@reflection[:join_table]].compact
          keys = joined.filter_map { |table| (key = @owner.key_of(table)) && ::Sequel.qualify(table, key) }
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
          if model.nil? then "it is a #{@reflection[:type]} association"
          elsif owner_key.nil? then "its key has several columns"
          elsif key_value.nil? then "the type of #{owner_key} (#{@owner.type(owner_key)}) cannot be a key here"
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
          @owner.columns.to_h { |column| [column, PROBES[@owner.type(column)]] }.merge(owner_key => key_value)
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

          # @param list [String] the SELECT list
          # @param single [Boolean] whether the association is to-one
          # @return [String]
          def sql(list, single: false)
            (single ? first : ordered).select(::Sequel.lit(list)).sql
          end

          # @return [String] SELECT of all related columns, with the dataset's limit, DISTINCT and order
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

          # @return [Boolean] whether it can read many owners at once (no LIMIT, DISTINCT, GROUP BY or UNION)
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
