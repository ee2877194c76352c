# frozen_string_literal: true

module Castellan
  module Rows
    # Reads values at the end of to-one paths with one LEFT JOIN per association.
    #
    #   value = JoinedPaths::Value.new(%i[employee], %("employees"."id"), 5)
    #   joined = JoinedPaths.new(adapter, [value], FirstRows)
    #   joined.text       # => LEFT JOIN (SELECT … FROM "employees" …) castellan_j0 ON …
    #   joined.columns    # => { 5 => "castellan_j0.castellan_v5" }, by position in the SELECT list
    #
    # A join never multiplies rows: it returns at most one row for each owner (see {FirstRows}). Joined tables
    # and columns have aliases, so that no column of the caller's scope becomes ambiguous. Frozen.
    class JoinedPaths
      # @!attribute path [Array<Symbol>] to-one associations
      # @!attribute sql [String] the value, a column of the last association's table
      # @!attribute index [Integer] its position in the SELECT list
      Value = Struct.new(:path, :sql, :index)

      # @return [Hash{Integer => String}]
      # @return [String]
      attr_reader :columns, :text

      # @param first_rows [#call] returns {FirstRows} of an association, or nil
      # @param reach [Symbol] :unique joins only associations with at most one row for each owner; :all reads
      #   the first rows of all owners; :page reads those of the rows in `castellan_rows`
      def initialize(adapter, values, first_rows, reach)
        @first_rows = first_rows
        @reach = reach
        @columns = {}
        @joins = []
        joined = values.select { |value| joins?(adapter, value.path) }
        join(adapter, joined) { |key, index| reach == :page ? "castellan_rows.castellan_c#{index}" : adapter.types.qualified(key) }
        @text = @joins.join(" ").freeze
        @columns.freeze
        freeze
      end

      private

      # On a page, only the owners of the first step are known.
      def joins?(adapter, path)
        level = adapter
        path.each_with_index do |name, step|
          association = level.association(name)
          first = @first_rows.call(association) if association && association.reason.nil? && level.same_database?(association.adapter)
          return false unless first && (first.unique? || @reach == :all || (@reach == :page && step.zero?))

          level = association.adapter
        end
        true
      end

      # @yieldparam key [Symbol] the owner's key
      # @yieldparam index [Integer] the position of one of the owner's values
      # @yieldreturn [String] SQL for the key in the statement
      def join(adapter, values)
        values.group_by { |value| value.path.first }.each do |name, some|
          association = adapter.association(name)
          rest = some.map { |value| Value.new(value.path.drop(1), value.sql, value.index) }
          add(association, rest, yield(association.owner_key, some.first.index))
        end
      end

      def add(association, values, owner)
        number = @joins.size
        ends, further = values.partition { |value| value.path.empty? }
        keys = further.map { |value| association.adapter.association(value.path.first).owner_key }.uniq
        @joins << nil
        rows = rows(association, number, ends, keys, owner)
        @joins[number] = "LEFT JOIN (#{rows}) castellan_j#{number} ON castellan_j#{number}.castellan_k = #{owner}"
        join(association.adapter, further) { |key, _| "castellan_j#{number}.castellan_o#{keys.index(key)}" }
      end

      def rows(association, number, ends, keys, owner)
        first = @first_rows.call(association)
        ends.each { |value| @columns[value.index] = "castellan_j#{number}.castellan_v#{value.index}" }
        list = ["#{first.key} AS castellan_k", *ends.map { |value| "#{value.sql} AS castellan_v#{value.index}" },
                *keys.map.with_index { |key, index| "#{association.adapter.types.qualified(key)} AS castellan_o#{index}" }]
        first.sql(list.join(", "), (@reach == :page && "SELECT #{owner} FROM castellan_rows") || nil)
      end

      # Selects the owners whose value at the end of a path matches, where each association has at most one row for an
      # owner. A subquery for each owner (see {Association::Correlated}) would read all of them. Not for NULL. Frozen.
      #
      #   Matching.new(adapter, %i[author], :name, []).around(%("posts"."author_id"))
      #   # => ["posts"."author_id" IN (SELECT … FROM (SELECT … FROM "authors" …) castellan_m0 WHERE , castellan_m0.castellan_v, )]
      class Matching
        # @param visible [Array<ScopedRows, nil>] the viewer's scope for each step
        def initialize(adapter, path, column, visible)
          association = adapter.association(path.first)
          @target = association.adapter
          @rows = FirstRows.of(association)
          @rest = Matching.new(@target, path.drop(1), column, visible.drop(1)) if path.size > 1
          @value = @rest ? @target.types.qualified(@target.association(path[1]).owner_key) : @target.types.sql(column)
          @visible = visible.first
          @name = "castellan_m#{path.size - 1}"
          freeze
        end

        def possible? = !@rows.nil? && @rows.unique? && (@rest.nil? || @rest.possible?)

        # @param owner [String] the SQL expression of the owner's key
        # @return [Array(String, String, String)] the SQL before a condition, the expression of the path's end, the SQL after it;
        #   {ViewerScopes#filled} inserts the scopes
        def around(owner)
          keys = @visible&.keys || []
          list = ["#{@rows.key} AS castellan_k", "#{@value} AS castellan_v",
                  *keys.map.with_index { |key, index| "#{@target.types.qualified(key)} AS castellan_key#{index}" }]
          value = "#{@name}.castellan_v"
          before, value, after = @rest&.around(value) || ["", value, ""]
          ["#{owner} IN (SELECT #{@name}.castellan_k FROM (#{@rows.sql(list.join(", "))}) #{@name} WHERE #{before}", value,
           "#{after}#{seen(keys.size)})"]
        end

        private

        def seen(count)
          keys = Array.new(count) { |index| "#{@name}.castellan_key#{index}" }
          " AND #{keys.one? ? keys.first : "(#{keys.join(", ")})"} IN (#{@visible.mark})" if @visible
        end
      end

      # Reads a to-one association for many owners in one SELECT, with the same rows as lazy loading.
      #
      #   first = JoinedPaths::FirstRows.of(adapter.association(:last_login))
      #   first.key                                  # => "tokens"."user_id"
      #   first.sql("#{first.key} AS castellan_k")   # => SELECT DISTINCT ON ("tokens"."user_id") … ORDER BY …
      #
      # PostgreSQL only, unless {#unique?}. Reads the first in the table among rows that are equal in the
      # association's order, as lazy loading does without an index in this order. With such an index, a
      # subquery for each owner is faster: it is one lookup however many rows an owner has.
      class FirstRows
        COLUMN = /\A(?<table>(?:["`][^"`]+["`]\.)*["`](?<name>[^"`]+)["`])\.["`](?<column>[^"`]+)["`]\z/
        ORDER = / ORDER BY (.+) LIMIT 1\z/m
        private_constant :COLUMN, :ORDER

        # @param association [Object] a to-one association of an adapter
        # @return [FirstRows, nil] nil if the rows can or should be read only owner by owner
        def self.of(association)
          lazy = association.lazy if association.reason.nil?
          first = new(association.adapter, lazy) if lazy&.first_of_many?
          first if first&.possible?
        end

        # @return [String] the column that is compared with the owner's key
        attr_reader :key

        def initialize(adapter, lazy)
          @lazy = lazy
          @adapter = adapter
          statement = @lazy.sql("1", single: true)
          @key = Association::OwnerKey.column(statement)
          @place = COLUMN.match(@key.to_s)
          @order = statement[ORDER, 1]
          @unique = !@place.nil? && own_table? && !@lazy.joins? && @adapter.types.unique?(@place[:column])
          freeze
        end

        def possible? = !@place.nil? && (unique? || (table? && !index_in_order?))

        # @return [Boolean] whether an owner has at most one row, so that none must be chosen
        def unique? = @unique

        # @param owners [String, nil] a SELECT of the owners' keys; nil reads the rows of all owners
        # @return [String]
        def sql(list, owners = nil)
          text = unique? ? @lazy.rows_sql(list) : @lazy.first_rows_sql(key, list, places)
          Association::OwnerKey.replace_comparison(text) { owners && !unique? ? "#{key} IN (#{owners})" : "TRUE" }
        end

        private

        def own_table? = @place[:name] == own_name
        def own_name = @adapter.table.to_s.split(".").last

        # Views and aliases have no ctid.
        def table? = [@place[:name], own_name].all? { |name| @adapter.types.tables.include?(name) }

        # With :through, the joined table has the key.
        def places
          [@place[:table], *(@adapter.types.table unless own_table?)].map { |table| "#{table}.ctid" }.join(", ")
        end

        def index_in_order?
          return false unless @order && own_table?

          first = @order.split(",").first
          @adapter.types.indexes_from(@place[:column]).flatten.any? { |column| first.match?(/\b#{Regexp.escape(column)}\b/) }
        end
      end
    end
  end
end
