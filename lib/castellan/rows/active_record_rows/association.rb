# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Describes how rows read one association of an ActiveRecord model. Frozen.
      class Association < Rows::Association
        # SQLite stores text in integer columns, and all text sorts after all numbers.
        LARGEST = ::Arel.sql(((2**63) - 1).to_s).freeze
        private_constant :LARGEST

        def initialize(owner, reflection)
          @owner = owner
          @reflection = reflection
          @name = reflection.name
          @macro = reflection.macro
          @model = reflection.klass unless reflection.polymorphic?
          @owner_key = single_key
          @reason = find_reason
          freeze
        end

        # (see Rows::Association#reason_for)
        def reason_for(relationship)
          declared_anew? ? "a class of its table declares it anew" : super
        end

        def to_many?
          @reflection.collection?
        end

        # @return [LazyStatement]
        def lazy
          LazyStatement.new(owner_record.association(name).scope, fallback_order: fallback_order)
        end

        # @param id [Symbol] the related resource's id column
        # @param read [Boolean] whether the related rows are read too, which finds dangling links
        # @return [Array(LazyStatement, String, Boolean)] the statement that holds the links, its SQL
        #   expression of the related id, and whether links may dangle
        def links(id, read: false)
          joined = joined_links(id, read) if to_many? && @reflection.through_reflection?
          joined || [lazy, adapter.types.qualified(id), false]
        end

        # @return [LazyStatement] selects the related rows with a value in the given integer column
        def lazy_where_present(column)
          relation = owner_record.association(name).scope
          present = @owner.dialect.name == :sqlite ? model.arel_table[column].lteq(LARGEST) : model.arel_table[column].not_eq(nil)
          LazyStatement.new(relation.where(present), fallback_order: fallback_order)
        end

        # @return [Boolean] whether the SQL is constant: no default scope, and only constant scopes
        def stable?
          steady?(@reflection) { |scope| scope.nil? || ConstantScope.constant?(scope) }
        end

        # @return [Boolean] whether it is a has_many without :through
        def direct?
          !@reflection.through_reflection? && macro == :has_many
        end

        # @param id [Symbol] the related resource's id column
        # @return [Boolean] whether the owner's foreign key is that id; false with a default scope
        def foreign_key_of?(id)
          macro == :belongs_to && unscoped? && @reflection.association_primary_key == id.to_s
        end

        # @return [Boolean] whether an index finds the related rows of one owner
        def indexed?
          found = @reflection.chain.last
          key = found.join_primary_key
          !key.is_a?(Array) && @owner.related(found.klass).types.indexed?(key)
        end

        # @return [Symbol, nil] the type column of a polymorphic belongs_to
        def type_column
          @reflection.foreign_type.to_sym if @reflection.polymorphic?
        end

        # @param kind [Class, String] a model, or a value of {#type_column}
        # @return [String]
        def type_name(kind)
          kind.is_a?(Class) ? kind.polymorphic_name : kind.to_s
        end

        private

        def reason_for_several(relationship)
          return super unless @reflection.polymorphic?
          return "its key has several columns" if owner_key.nil?
          return "its scope takes part" if @reflection.scope
          return "#{type_column} names the class above its types" if relationship.definitions.any? { |one| of_part?(one.model) }

          other = relationship.definitions.find { |definition| definition.model.nil? || !own_key?(definition) }
          "#{other.type} is identified by something else than what #{owner_key} holds" if other
        end

        # With STI, all classes are stored under the base class's name.
        def of_part?(model)
          model.is_a?(Class) && model < ::ActiveRecord::Base && model.finder_needs_type_condition?
        end

        def declared_anew?
          ActiveRecordRows.subclasses(@owner.model).any? { |klass| !klass.reflect_on_association(name).equal?(@reflection) }
        end

        def own_key?(definition)
          (@reflection.options[:primary_key] || definition.model.primary_key).to_s == definition.id_column.to_s
        end

        # Reads the links from the join table alone if a foreign key guarantees that the related rows exist
        # (SQLite enforces foreign keys only on connections that enable them), or if the related rows are read
        # as well, by primary key.
        def joined_links(id, read)
          source = @reflection.source_reflection
          join = @owner.association(@reflection.through_reflection.name)
          return unless unscoped? && join.direct? && source.macro == :belongs_to && !source.polymorphic?
          return unless source.association_primary_key == id.to_s && ActiveRecordRows.comparable_keys?(join.model, source)

          key = source.foreign_key.to_s
          sure = @owner.dialect.lateral? && join.adapter.types.references?(key, model.table_name, id.to_s)
          [join.lazy_where_present(key), join.adapter.types.qualified(key), !sure] if sure || (read && integers?(join.adapter, key, id))
        end

        def integers?(join, key, id)
          id.to_s == model.primary_key && adapter.types.integer?(id) && join.types.integer?(key)
        end

        def owner_record
          columns = @owner.model.column_names.to_h { |column| [column, nil] }
          @owner.model.instantiate(columns.merge(owner_key.to_s => OwnerKey.value(owner_key_type)))
        end

        def owner_key_type
          @owner.model.type_for_attribute(owner_key.to_s).type
        end

        def fallback_order
          [through_model, model].compact.filter_map { |klass| klass.arel_table[klass.primary_key] if klass.primary_key.is_a?(String) }
        end

        # The model joined last, unless it is the related model, whose table has an alias in the statement.
        def through_model
          return unless @reflection.through_reflection?

          joined = @reflection.through_reflection.klass
          joined unless joined.table_name == model.table_name || @reflection.through_reflection.through_reflection?
        end

        def unscoped?
          steady?(@reflection, &:nil?)
        end

        # Whether the block is true for every scope on the way, and no default scope or STI applies.
        def steady?(reflection, &holds)
          return false if !yield(reflection.scope) || (!reflection.polymorphic? && adds?(reflection.klass))
          return true unless reflection.through_reflection?

          steady?(reflection.through_reflection, &holds) && steady?(reflection.source_reflection, &holds)
        end

        def adds?(klass)
          ActiveRecordRows.default_scope?(klass) || klass.finder_needs_type_condition?
        end

        def single_key
          key = @reflection.polymorphic? ? @reflection.foreign_key : @reflection.chain.last.join_foreign_key
          key.to_sym unless key.is_a?(Array)
        end

        def find_reason
          if @owner.dialect.reason then @owner.dialect.reason
          elsif @reflection.polymorphic? then "a polymorphic belongs_to has no one table"
          elsif keys(@reflection).any?(Array) then "its key has several columns"
          elsif scopes(@reflection).any? { |scope| scope.arity != 0 } then "its scope takes the owner"
          elsif @reflection.options[:disable_joins] then "disable_joins: true makes several statements of it"
          elsif OwnerKey.value(owner_key_type).nil? then "the type of #{owner_key} (#{owner_key_type}) cannot be a key here"
          elsif !ActiveRecordRows.comparable_keys?(@owner.model, @reflection.chain.last)
            "#{owner_key} and the column that is compared with it are of different types, or of a type or collation in which " \
              "different texts can be equal"
          else
            reason_of_scope
          end
        end

        def reason_of_scope
          return if scopes(@reflection).empty?

          relation = owner_record.association(name).scope
          if RelationSql.expressions?(relation) then "its scope selects something else than columns"
          elsif relation.from_clause.value then "its scope has a FROM of its own"
          elsif relation.eager_loading? then "its scope loads other records in one statement with its own"
          elsif !to_many? && relation.distinct_value && relation.offset_value then "its scope has DISTINCT with OFFSET"
          end
        rescue StandardError
          nil # the scope needs something that only a request has
        end

        def keys(reflection)
          return keys(reflection.through_reflection) + keys(reflection.source_reflection) if reflection.through_reflection?
          return [reflection.foreign_key] if reflection.polymorphic?

          [reflection.join_primary_key, reflection.join_foreign_key]
        end

        def scopes(reflection)
          own = [reflection.scope].compact
          reflection.through_reflection? ? own + scopes(reflection.through_reflection) + scopes(reflection.source_reflection) : own
        end

        # Builds the SQL that ActiveRecord would run to load an association lazily, for the owner of {OwnerKey}.
        #
        #   lazy.sql(%("roles"."id"))   # => SELECT "roles"."id" FROM "roles" … WHERE … = 1847362915 ORDER BY …
        #
        # Orders an association without an order by its keys, so that documents are deterministic.
        class LazyStatement
          def initialize(relation, fallback_order:)
            @relation = relation.except(:includes, :preload, :eager_load)
            @fallback = fallback_order
            freeze
          end

          # @param list [String] the SELECT list
          # @param single [Boolean] whether the association is to-one
          # @return [String]
          def sql(list, single: false)
            relation = single ? first : ordered(@fallback)
            relation.reselect(Arel.sql(list)).to_sql
          end

          # @return [String] SELECT of all related columns, with the scope's limit, DISTINCT and order
          def whole_sql
            key = @relation.klass.primary_key
            ordered(key ? [@relation.klass.arel_table[key]] : []).to_sql
          end

          # @param key [String] the column that is compared with the owner's key
          # @param list [String] the SELECT list
          # @param last [String] the last term of the order
          # @return [String] SELECT of the first row of each key
          def first_rows_sql(key, list, last)
            rows = @relation.except(:order, :limit).reselect(Arel.sql("DISTINCT ON (#{key}) #{list}"))
            rows.order(Arel.sql(key), *@relation.order_values, Arel.sql(last)).to_sql
          end

          # @return [String] SELECT of all rows, without an order
          def rows_sql(list)
            @relation.except(:order, :limit).reselect(Arel.sql(list)).to_sql
          end

          # @return [Boolean] whether the first row of many owners can be read at once
          def first_of_many?
            @relation.offset_value.nil? && !@relation.distinct_value && @relation.group_values.empty? && @relation.lock_value.nil?
          end

          # @return [Boolean] whether it joins tables
          def joins?
            @relation.joins_values.any? || @relation.left_outer_joins_values.any?
          end

          # @return [Boolean] whether it can read many owners at once (no LIMIT, DISTINCT or GROUP BY)
          def plain?
            @relation.limit_value.nil? && @relation.offset_value.nil? && !@relation.distinct_value && @relation.group_values.empty?
          end

          private

          # The first row is also the first distinct row; with DISTINCT, PostgreSQL requires the order columns
          # in the SELECT list.
          def first
            @relation.offset_value ? @relation.limit(1) : @relation.except(:distinct).limit(1)
          end

          def ordered(fallback)
            @relation.order_values.empty? && fallback.any? && @relation.group_values.empty? ? @relation.order(*fallback) : @relation
          end
        end
      end
    end
  end
end
