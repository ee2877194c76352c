# frozen_string_literal: true

module Castellan
  module Rows
    # Selects the rows on a page of several tables, in one order, with one statement.
    #
    #   union = Union.new([issues, comments])               # renderings of the types, whose rows are filtered
    #   union.rows(limit: 20, offset: 40)                   # => [["1", "7", nil, "7", "2026-01-31 …"], …]
    #   union.place(row)                                    # => ["7", 1], the id and the position of the type
    #   union.rows(limit: 20, after: union.cursor(row))     # => the rows that follow
    #
    # Each table reads no more rows than the page needs, through an index on the sort columns and the primary
    # key. Rows with equal values are ordered by type, then by key.
    class Union
      # The rows of one type, and their order.
      Part = Struct.new(:adapter, :scope, :keyset, :id_column) do
        def key_sql = adapter.types.qualified(keyset.keys.first)
        def integer? = adapter.types.integer?(keyset.keys.first)

        # @return [Object, nil] the key for its string in a cursor; nil if it is invalid
        def key(text)
          integer? ? Integer(text.to_s, 10, exception: false) : text
        end
      end
      COLUMNS = 4 # the type, the id, the key as a number, the key as text
      private_constant :Part, :COLUMNS

      # @param types [Array<#definition, #adapter, #narrowed, #request, #scopes>] see {Document::Rendering}
      def initialize(types)
        @parts = types.map do |type|
          keyset = Keyset.new(type.definition, type.adapter, type.request.sort, type.scopes)
          Part.new(type.adapter, within_keys(type), keyset, type.definition.id_column)
        end
        @directions = types.first.request.sort.map(&:last)
        @last = @directions.last || :asc
      end

      # @param limit [Integer, nil]
      # @param after [Array, nil] a cursor, and whether its own row is selected too
      # @param before [Array, nil] like `after`
      # @return [Array<Array>] see {#place} and {#cursor}
      def rows(reversed: false, **around)
        adapter = @parts.first.adapter
        found = adapter.session { |session| session.rows(sql(reversed: reversed, **around)) }
        found.is_a?(Array) ? found : found.values
      end

      # @return [String] see {#rows}
      def sql(limit: nil, offset: 0, after: nil, before: nil, reversed: false)
        most = limit && (limit + offset)
        parts = @parts.each_with_index.map do |part, kind|
          "SELECT * FROM (#{part(part, kind, most, after, before, reversed)}) castellan_#{kind}"
        end
        "SELECT * FROM (#{parts.join(" UNION ALL ")}) castellan_rows ORDER BY #{order(reversed)}" \
          "#{" LIMIT #{limit} OFFSET #{offset}" if limit}"
      end

      # @return [Array(String, Integer)] the id and the position of the type
      def place(row) = [row[1].to_s, row[0].to_i]

      # @return [Array] the values of the sort columns, the type's position and the key
      def cursor(row) = [*row.drop(COLUMNS), row[0].to_i, row[2] || row[3]]

      # @param values [Array] a cursor, which the client may have changed
      # @return [Boolean] whether they are a {#cursor} of this order
      def values?(values)
        return false unless values.is_a?(Array) && values.size == @directions.size + 2

        *sorted, kind, key = values
        part = @parts[kind] if kind.is_a?(Integer) && kind >= 0
        !part.nil? && !part.key(key).nil? && part.keyset.values?(of_part(part, sorted, key))
      end

      # @return [Symbol, Array<Symbol>, nil] the sort column or path whose values a cursor cannot contain
      def uncomparable = @parts.filter_map { |part| part.keyset.uncomparable }.first

      private

      # A scope that groups rows, or orders joined tables, becomes a condition on the keys.
      def within_keys(type)
        scopes = type.adapter.scopes
        return type.narrowed unless scopes.reason(type.narrowed)

        ViewerScopes::ScopedRows.new(type.definition, type.adapter, type.narrowed).narrow(scopes.all)
      end

      def part(part, kind, most, after, before, reversed)
        scopes = part.adapter.scopes
        scope = part.scope
        { after: after, before: before }.each do |side, place|
          scope = scopes.matching(scope, beyond(part, kind, *place, side)) if place
        end
        scope = scopes.order(scope, part.keyset.order(reversed: reversed))
        scope = scopes.page(scope, limit: most, offset: 0) if most
        scopes.select_sql(scope, list(part, kind))
      end

      def list(part, kind)
        keys = part.integer? ? [part.key_sql, "CAST(NULL AS text)"] : ["CAST(NULL AS bigint)", "CAST(#{part.key_sql} AS text)"]
        id = "CAST(#{part.adapter.types.qualified(part.id_column)} AS text)"
        columns = [kind, id, *keys, *part.keyset.expressions.first(@directions.size)]
        columns.each_with_index.map { |sql, index| "#{sql} AS castellan_#{index}" }.join(", ")
      end

      # Rows of other types that equal the cursor's sort values are all before its row, or all after it.
      def beyond(part, kind, values, inclusive, side)
        *sorted, other, key = values
        return part.keyset.beyond(of_part(part, sorted, key), side, inclusive: inclusive) if kind == other

        within = (side == :after) == ((kind > other) == (@last == :asc))
        return within ? "1 = 1" : "1 = 0" if sorted.empty?

        part.keyset.beyond(sorted, side, inclusive: within)
      end

      # Does not add the key if it is already a sort column.
      def of_part(part, sorted, key) = [*sorted, part.key(key)].first(part.keyset.expressions.size)

      def order(reversed)
        directions = [*@directions, @last, @last, @last]
        columns = [*(COLUMNS...(COLUMNS + @directions.size)), 0, 2, 3]
        columns.zip(directions).map { |column, direction|
          "castellan_#{column} #{(reversed ? Keyset::OPPOSITE.fetch(direction) : direction).upcase}"
        }.join(", ")
      end
    end
  end
end
