# frozen_string_literal: true

module Castellan
  class Document
    # Reads a page of the Cursor Pagination profile, and writes the cursors of its first and last row.
    #
    #   page = CursorPage.new(rendering, rendering.request.cursor)
    #   page.scope           # => the relation or dataset of the page's rows, in order
    #   page.links(base)     # => { "first" => …, "prev" => nil, "next" => "/posts?page[after]=aUx0…" }
    #
    # One statement reads the keys of the page and one more row, if possible from an index on the sort
    # columns and the key; the rows are then read by key. Late pages cost as much as the first, and
    # rows inserted meanwhile shift nothing.
    class CursorPage
      # @param rendering [Rendering]
      # @param cursor [Plan::Request::Place]
      # @raise [BadRequest] for an invalid cursor, or an order that does not support cursors
      def initialize(rendering, cursor)
        @rendering = rendering
        @adapter = rendering.adapter
        @after = cursor.after
        @before = cursor.before
        @order = cursor.order
        @size = cursor.size
        @keyset = keyset
        check
      end

      # @return [Object] the relation or dataset of the page's rows
      def scope
        column = @keyset.keys.one? ? @keyset.keys.first : @keyset.keys
        ids = rows.map { |row| @keyset.keys.one? ? @keyset.key_of(row).first : Rows::Ids.joined(@keyset.key_of(row)) }
        @adapter.scopes.by_ids(@adapter.scopes.order(narrowed, @keyset.order), ids, column)
      end

      # @param base [String] a path and query that end with "?" or "&"
      # @return [Hash{String => String, nil}]
      def links(base)
        previous, following = ends
        { "first" => nil, "prev" => previous && ["before", previous], "next" => following && ["after", following] }
          .to_h { |name, place| [name, (link(base, place) if place || name == "first")] }
      end

      # @return [Plan::RowSet] the rows with each item's cursor in its meta object
      def with_cursors(row_set)
        Plan::RowSet.new(row_set.tables.map do |table|
          next table unless table.node.cursors

          texts = texts(table.node)
          table.with_pages(Rows::ColumnValues.column(table.rows, 0).map { |id| texts[id.to_s]&.then { |text| { "cursor" => text } } })
        end)
      end

      # @return [Hash{String => Object}] the profile's pagination metadata
      def meta(total)
        { "total" => total, "rangeTruncated" => (true if @after && @before && more?) }.compact
      end

      private

      def keyset
        Rows::Keyset.new(@rendering.definition, @adapter, @rendering.request.sort, @rendering.scopes)
      end

      def check
        { "after" => @after, "before" => @before }.each do |name, cursor|
          next if cursor.nil? || @keyset.values?(cursor.values)

          Plan::Parameter.refuse("page[#{name}]", "page[#{name}] is no cursor of this list")
        end
        column = @keyset.uncomparable or return
        detail = "pages cannot be cut by the values of #{Array(column).join(".")}; sort by something else"
        type = "#{Plan::Cursor::PROFILE}/unsupported-sort"
        raise BadRequest.new(detail, parameter: "sort", title: "Unsupported sort", links: { "type" => type })
      end

      # Without `page[after]`, the page ends at `page[before]`, so it is read backwards.
      def backwards?
        @before && !@after
      end

      def rows
        read
        @rows
      end

      def texts(_node)
        @texts ||= rows.to_h { |row| [@keyset.key_of(row).first.to_s, Plan::Cursor.new(row).text(@order)] }
      end

      def more?
        read
        @more
      end

      def read
        return if @rows

        found = found(@size + 1)
        @more = found.size > @size
        @rows = found.first(@size)
        @rows.reverse! if backwards?
      end

      def found(most)
        scope = @adapter.scopes.page(@adapter.scopes.order(within, @keyset.order(reversed: backwards?)), limit: most, offset: 0)
        found = @adapter.session { |session| session.rows(@adapter.scopes.select_sql(scope, @keyset.list)) }
        found.is_a?(Array) ? found : found.values
      end

      def within
        scope = narrowed
        scope = beyond(scope, @after, :after) if @after
        scope = beyond(scope, @before, :before) if @before
        scope
      end

      def beyond(scope, cursor, side)
        @adapter.scopes.matching(scope, @keyset.beyond(cursor.values, side, inclusive: cursor.includes_row?(side)))
      end

      # A scope that groups rows, or orders joined tables, becomes a condition on the keys.
      def narrowed
        scope = @rendering.narrowed
        return scope unless @adapter.scopes.reason(scope)

        Rows::ViewerScopes::ScopedRows.new(@rendering.definition, @adapter, scope).narrow(@adapter.scopes.all)
      end

      # If the page is empty, the link in the other direction includes the cursor's own row.
      # @return [Array(Plan::Cursor, Plan::Cursor)] before the first row and after
      #   the last; nil at an end of the list
      def ends
        return [@after && Plan::Cursor.new(@after.values, 1), @before && Plan::Cursor.new(@before.values, -1)] if rows.empty?

        first, last = [rows.first, rows.last].map { |row| Plan::Cursor.new(row) }
        [(first if @after || (backwards? && more?)), (last if @before || more?)]
      end

      def link(base, place)
        side, cursor = place
        "#{base}#{"page%5B#{side}%5D=#{cursor.text(@order)}&" if cursor}page%5Bsize%5D=#{@size}"
      end
    end
  end
end
