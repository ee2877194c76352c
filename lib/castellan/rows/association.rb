# frozen_string_literal: true

module Castellan
  module Rows
    # Describes how one association of a model is read as rows; each adapter has a subclass.
    #
    #   association = Rows.for(User).association(:roles)
    #   association.to_many?                           # => true
    #   association.lazy.sql(%("roles"."id"))          # => the SELECT that loads the roles of {OwnerKey}
    #
    # An association that SQL cannot read (a scope that takes the owner, composite keys) has a
    # {#reason} and is read through models.
    class Association
      # @return [Symbol]
      # @return [Symbol] :has_many, :has_one, :belongs_to, :has_and_belongs_to_many
      # @return [Class] the related model
      # @return [Symbol] the owner's column that is compared with the related key
      # @return [String, nil] why the association cannot be read as rows
      attr_reader :name, :macro, :model, :owner_key, :reason

      # @return [Object] the adapter of the related model
      def adapter = @owner.related(model)

      # @param id [Symbol] the related resource's id column
      # @param read [Boolean] whether the related rows are read too; ids without a row are then found
      # @return [Array(LazyStatement, String, Boolean)] the statement that returns the related ids, its SQL
      #   expression of the id, and whether rows of these ids may be missing
      def links(id, read: false) # rubocop:disable Lint/UnusedMethodArgument -- of ActiveRecord
        [lazy, adapter.types.qualified(id), false]
      end

      # @return [Boolean] whether an index is known to find the related rows of one owner
      def indexed? = false

      # @return [Boolean] whether each related row has the key of its owner; false for a dataset of the
      #   application, which may compare the key in a subquery
      def of_keys? = true

      # @param relationship [Resource::Relationship] a relationship that uses this association
      # @return [String, nil] why it cannot be read as rows
      def reason_for(relationship)
        composite = relationship.definitions.find { |definition| definition.id_column.is_a?(Array) }
        return ModelReasons.of_id(composite) if composite

        relationship.polymorphic? ? @owner.dialect.reason || reason_for_several(relationship) : reason
      end

      def rows?(relationship) = reason_for(relationship).nil?

      # @return [Object, nil] equal as long as all scopes of the association have the same SQL; nil if only the SQL shows that
      def identity = nil

      # @param now [Array<Association>] those whose SQL is kept by {#identity}
      # @return [Boolean] whether the SQL can be kept
      def kept?(now) = stable? || now.include?(self)

      private

      def reason_for_several(_relationship) = "its records are of several resources"

      # Provides placeholder keys, with which the ORM generates the SQL of an association.
      #
      #   sql = %(SELECT "roles"."id" FROM "roles" … WHERE "assignments"."user_id" = 1847362915)
      #   OwnerKey.column(sql)                     # => %("assignments"."user_id")
      #   OwnerKey.replace(sql, %("users"."id"))   # => … WHERE "assignments"."user_id" = "users"."id"
      #
      # The ORM writes the statement that loads the association lazily, with all its scopes; an adapter then
      # replaces the key in the SQL with a column of the surrounding statement or with the ids of all parents.
      # The number fits into four bytes, because ActiveRecord writes `1=0` for values out of range.
      module OwnerKey
        NUMBER = 1_847_362_915
        LITERAL = /'[^']*#{NUMBER}'|(?<![\w.'-])#{NUMBER}(?![\w.'])/
        COMPARISON = /((?:["`][^"`]+["`]\.)*["`][^"`]+["`]) = #{LITERAL}/
        VALUES = {
          integer: NUMBER, string: "castellan #{NUMBER}", text: "castellan #{NUMBER}", citext: "castellan #{NUMBER}",
          uuid: "c0de0000-0000-4000-8000-00#{NUMBER}"
        }.freeze
        private_constant :LITERAL, :COMPARISON, :VALUES

        module_function

        # @return [Integer, String, nil] nil for types without a placeholder
        def value(type) = VALUES[type]

        # @return [Boolean] whether an SQL value is the key
        def value?(text) = [VALUES[:integer].to_s, VALUES[:uuid]].include?(text)

        # @return [String] the SQL with the expression in place of the key
        # @raise [DeclarationError] if the SQL does not contain the key, i.e. is the same for every owner
        def replace(sql, expression)
          raise DeclarationError, "the statement of an association does not compare its owner's key with a value: #{sql}" unless in?(sql)

          sql.gsub(LITERAL) { expression }
        end

        # @yieldreturn [String] the condition that replaces the comparison
        def replace_comparison(sql) = sql.sub(COMPARISON) { yield Regexp.last_match(1) }

        # @return [String, nil] the column that is compared with the key; nil if the key occurs anywhere else
        def column(sql)
          sql[COMPARISON, 1] if sql.scan(LITERAL).size == 1
        end

        def in?(sql) = LITERAL.match?(sql)
      end

      # Builds the SQL with which the ORM would lazily load an association for the owner {OwnerKey}. Frozen.
      #
      #   lazy = Rows.for(User).association(:roles).lazy
      #   lazy.sql(%("roles"."id"))   # => SELECT "roles"."id" FROM "roles" … WHERE … = 1847362915 ORDER BY …
      #
      # Adds an order by the keys if the association has none, so that documents are deterministic.
      class LazyStatement
        # @param scopes [Scopes] of the related model
        # @param scope [Object] the relation or dataset of the association
        # @param keys [Array<Object, nil>] the keys of a joined table and, last, of
        #   the related table, as ORDER BY terms
        def initialize(scopes, scope, keys)
          @scopes = scopes
          @scope = scope
          @keys = keys.compact
          @own_key = keys.last(1).compact
          freeze
        end

        # @param single [Boolean] whether the association is to-one
        # @return [String]
        def sql(list, single: false)
          return @scopes.select(ordered(@keys), list) unless single

          first = @scopes.first(@scope)
          alias_name = @scopes.own_name if orders_by_list?
          alias_name ? "SELECT #{list} FROM (#{@scopes.sql(first)}) #{alias_name}" : @scopes.select(first, list)
        end

        # @return [String] SELECT of all related columns, with the scope's limit, DISTINCT and order
        def whole_sql = @scopes.sql(ordered(@own_key))

        # @param key [String] the column that is compared with the owner's key
        # @param last [String] the last ORDER BY term
        # @return [String] SELECT of the first row for each value of `key`
        def first_rows_sql(key, list, last)
          order = [@scopes.raw(key), *@scopes.terms(@scope), @scopes.raw(last)]
          @scopes.select(@scopes.reorder(@scopes.unlimited(@scope), order), "DISTINCT ON (#{key}) #{list}")
        end

        # @return [String] SELECT of all rows, without an order
        def rows_sql(list) = @scopes.select(@scopes.unordered(@scopes.unlimited(@scope)), list)

        # @return [Boolean] whether one statement can read the first row of many owners
        def first_of_many?
          @scopes.window(@scope).last.nil? && !@scopes.distinct?(@scope) && !@scopes.grouped?(@scope) && !@scopes.locked?(@scope) &&
            !@scopes.either?(@scope) && !orders_by_list?
        end

        # @return [Boolean] whether the statement joins tables
        def joins? = @scopes.joins?(@scope)

        # @return [Boolean] whether one statement can read all rows of many owners, and another SELECT list
        def plain?
          @scopes.window(@scope).none? && !@scopes.distinct?(@scope) && !@scopes.grouped?(@scope) && !@scopes.either?(@scope) &&
            !orders_by_list?
        end

        private

        # An order without a table names a column of the SELECT list.
        def orders_by_list? = joins? && @scopes.unqualified_order?(@scope)

        def ordered(keys)
          @scopes.terms(@scope).empty? && !@scopes.grouped?(@scope) && keys.any? ? @scopes.reorder(@scope, keys) : @scope
        end
      end

      # Represents one expression of a SELECT list: a column or a correlated subquery.
      #
      #   Correlated.column(%("users"."email"))
      #   Correlated.path(adapter, %i[employee], :id)   # (SELECT "employees"."id" … = "users"."id" LIMIT 1)
      #
      # Uses a subquery instead of a join, because a join multiplies rows, drops the association's LIMIT, and
      # mixes its order with the caller's. With an index, it costs one lookup per row.
      class Correlated
        NOTHING = [].freeze
        LAST_NAME = /[^."`]+(?=["`]?\z)/
        private_constant :NOTHING, :LAST_NAME

        # @return [Symbol, nil] the owner's column that the subquery needs; nil for a plain column
        # @return [String] SQL; a subquery contains {OwnerKey} in place of that column
        attr_reader :key, :text

        def self.column(sql) = new(nil, sql)

        # @param adapter [Object] the adapter of the model where the path begins
        # @param visible [Array<ScopedRows, nil>] the viewer's scope for each step, whose SQL {ViewerScopes#filled} inserts;
        #   hidden rows become NULL
        def self.path(adapter, path, name, visible = NOTHING)
          association = adapter.association(path.first)
          new(association.owner_key, path_sql(association, path.drop(1), name, visible))
        end

        # Each level has its own table alias, so that a path may use a table twice.
        def self.path_sql(association, rest, name, visible)
          target = association.adapter
          seen = visible.first
          return "(#{association.lazy.sql(target.types.sql(name), single: true)})" if rest.empty? && seen.nil?

          level = "castellan_#{rest.size}"
          inner = path(target, rest, name, visible.drop(1)) unless rest.empty?
          value = inner ? inner.within("#{level}.castellan_value") : "#{level}.castellan_value"
          list = ["#{inner ? target.types.qualified(inner.key) : target.types.sql(name)} AS castellan_value"]
          seen&.keys&.each_with_index { |key, index| list << "#{target.types.qualified(key)} AS castellan_key#{index}" }
          from = association.lazy.sql(list.join(", "), single: true)
          "(SELECT #{value} FROM (#{from}) #{level}#{" WHERE #{condition(level, seen)}" if seen})"
        end

        def self.condition(level, seen)
          columns = Array.new(seen.keys.size) { |index| "#{level}.castellan_key#{index}" }
          "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{seen.mark})"
        end
        private_class_method :path_sql, :condition

        def initialize(key, text)
          @key = key
          @text = text
          freeze
        end

        def column? = key.nil?

        # @param owner [String] the SQL expression of the owner's key in the surrounding statement
        def within(owner) = column? ? text : OwnerKey.replace(text, owner)

        # @param (see #within)
        # @return [String] the same, also where the subquery reads the owner's own table, as a tree does
        def beside(owner) = "(SELECT #{within("castellan_owner.castellan_key")} FROM (SELECT #{owner} AS castellan_key) castellan_owner)"

        # @return [Boolean] whether the subquery names a table like this, which would hide the outer table; raw SQL
        #   of a scope may name it without quotes, or without its schema
        def hides?(table) = !column? && /(?<!\w)#{Regexp.escape(table[LAST_NAME])}(?!\w)/i.match?(text)
      end
    end
  end
end
