# frozen_string_literal: true

module Castellan
  class Document
    # Writes a collection of several tables: one statement selects the page, then types are read by key.
    #
    #   class ActivityResource < Castellan::Resource
    #     types "IssueResource", "CommentResource"
    #     sort default: "-created_at"
    #   end
    class UnionRendering < Rendering
      # Reads a page of the Cursor Pagination profile, see {CursorPage}.
      class Page < CursorPage
        # @return [Rows::Reader::Places]
        def scope
          rows
          Rows::Reader::Places.new(@places)
        end

        private

        def keyset = @rendering.union

        def found(most)
          found = keyset.rows(limit: most, reversed: backwards?, after: place(@after, :after), before: place(@before, :before))
          @places = found.first(@size).map { |row| keyset.place(row) }
          @places.reverse! if backwards?
          found.map { |row| keyset.cursor(row) }
        end

        def texts(node)
          @texts ||= @places.zip(rows).group_by { |(_, kind), _| @rendering.definition.types[kind] }.transform_values do |found|
            found.to_h { |(id, _), row| [id, Plan::Cursor.new(row).text(@order)] }
          end
          @texts.fetch(node.definition, {})
        end

        def place(cursor, side) = cursor && [cursor.values, cursor.includes_row?(side)]
      end

      # @return [UnionRendering]
      # @raise [ConfigurationError] for a scope, records or an id
      def self.of_types(definition, adapter, given, id:, **around)
        return new(definition, nil, adapter: adapter, **around) if :all.equal?(given) && id.nil?

        raise ConfigurationError, "#{definition.name} lists the records of #{definition.types.map(&:name).join(", ")} and has no scope, " \
                                  "records or ids of its own: give those to the others, or declare their `scope`"
      end

      # @return [Rows::Union]
      def union
        @union ||= Rows::Union.new(members)
      end

      # @return [Rows::Reader::Places]
      def paged
        @paged ||= @cursor_page ? @cursor_page.scope : Rows::Reader::Places.new(union.rows(**limits).map { |row| union.place(row) })
      end

      # @return [Integer, nil]
      def total
        @total ||= members.sum { |one| one.adapter.scopes.count(one.narrowed) } if request.page && definition.paging.count
      end

      # @return [nil] these tables have no narrower versions
      def known_parts = nil

      # @return [Array<String>]
      def choosing_sql
        [statement, *scopes_sql]
      end

      # @return [String] SQL of the first page
      def statement
        union.sql(**limits)
      end

      # @return [Object] the rows of the first type; {#choosing_sql} has those of the others
      def narrowed
        members.first.narrowed
      end

      # @return [Array] see {Rendering#values}
      def values
        [super, members.map(&:values)]
      end

      # Does not compare with the models in `Castellan.verify`, because two records may have the same id.
      # @return [Written]
      def write
        output = write_rows
        Written.new(output.body, (output.blanks unless output.holes.empty?), @found)
      end

      private

      def members
        @members ||= definition.types.map do |type|
          Rendering.for(type, DeclarationCheck.of(type), :all, id: nil, request: request.for_type(type), scopes: scopes, viewer: viewer,
                                                               keeper: nil)
        end
      end

      # Raises for an invalid filter value before anything is read.
      def comparisons
        members && nil
      end

      def cursor_page
        Page.new(self, request.cursor) if request.cursor
      end

      def limits
        number, size = request.page
        size ? { limit: size, offset: (number - 1) * size } : {}
      end

      def selected = paged
      def counting_query = nil
      def order_sql = []

      def identity
        @identity ||= begin
          found = Rows::PlanScopes.of(plan, adapter).identities(scopes)
          [[*found.map(&:first), *members.map(&:shape)].join("\n"), found.map(&:last)]
        end
      end

      def scopes_sql
        super + members.flat_map(&:choosing_sql)
      end
    end
  end
end
