# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the links of one table and the related rows, by queuing SELECTs for each edge.
    #
    #   linkage = Linkage.new(reader, node_reader, reading)
    #   linkage.prefetch([7])    # queries the links in the round trip of the rows, if the rows' ids are known
    #   linkage.of(rows)         # => the links, see {Plan::RowSet::Table}; complete after the reading has run
    class Linkage
      NOTHING = [].freeze
      private_constant :NOTHING

      class << self
        # Drops links whose related row does not exist, after reading them from a join table or a foreign key.
        # Returns the links unchanged, without checking each, if all ids were found.
        # @param parents [Array<Array>, PG::Result] the parents' rows, which may have the links in a column
        # @param ids [Array<Object>] the ids that were queried, without duplicates
        # @param several [Boolean] whether the column contains comma-separated ids
        # @return [Object] the same links, or Plan::RowSet::Pairs
        def without_missing(found, parents, related, ids, several:)
          there = related.to_h { |id| [id.to_s, true] }
          return found if there.size == ids.size

          found.is_a?(Plan::RowSet::InColumn) ? in_column(found, parents, there, several) : pairs(found, there)
        end

        # Removes links to missing rows of one type of a polymorphic relationship.
        # @param found [Array<Array(Object, Object, Integer)>] parent id, related id and type position
        def reject_missing!(found, kind, related)
          there = ColumnValues.column(related, 0).to_h { |id| [id.to_s, true] }
          found.reject! { |_, id, other| other == kind && !there[id.to_s] }
        end

        private

        def in_column(found, parents, there, several)
          columns = [0, found.position].map { |position| ColumnValues.column(parents, position) }
          pairs = columns.reduce(:zip).flat_map do |parent, value|
            ids = several ? value.to_s.split(",") : [value].compact
            ids.filter_map { |id| [parent, id] if there[id.to_s] }
          end
          Plan::RowSet::Pairs.new(pairs, 0, 1)
        end

        def pairs(found, there)
          found = found.pairs if found.is_a?(Plan::RowSet::Lists)
          parents, related = [found.parent_position, found.related_position].map { |position| ColumnValues.column(found.rows, position) }
          Plan::RowSet::Pairs.new(parents.zip(related).select { |_, id| there[id.to_s] }, 0, 1)
        end
      end

      def initialize(reader, node_reader, reading)
        @reader = reader
        @node_reader = node_reader
        @reading = reading
        @links = Array.new(node_reader.links.size)
        @whole = {}
      end

      # Queries the links of all rows of the table in the round trip of the rows;
      # links of other rows are not written.
      def prefetch_whole
        @node_reader.links.each_with_index do |link, index|
          sql = (link.whole_sql if link&.select?) or next
          @whole[index] = true
          @reading.add(Reading::Query.new(link.association.adapter, sql, nil, @reader.kept?(link.edge)) { |rows|
            follow(index, link, Plan::RowSet::Lists.new(rows))
          })
        end
      end

      def prefetch(ids)
        @prefetched = query_links(ids)
        @expected = ids.size
      end

      # @return [Array<Object, nil>] the links of each edge; nil until the edge's query has run
      def of(rows)
        @rows = rows
        missing if @prefetched.nil? || ColumnValues.count(rows) != @expected
        @node_reader.links.each_with_index { |link, index| in_row(index, link) if link && !link.select? }
        @links
      end

      private

      # If rows are missing, the prefetched links may belong to the missing
      # rows: discards them and queries again.
      def missing
        @prefetched&.each(&:discard)
        return unless @node_reader.selects? && @node_reader.links.each_with_index.any? { |link, index| link&.select? && !@whole[index] }

        query_links((Ids::List.of(@rows) unless @rows.is_a?(Array)) || ColumnValues.ids(@rows, 0))
      end

      def query_links(ids)
        queries = []
        @node_reader.links.each_with_index do |link, index|
          query = query(index, link, ids) if link&.select? && !@whole[index]
          queries << query if query
        end
        queries
      end

      def query(index, link, ids) = link.kind == :own_rows ? own_rows(index, link, ids) : pairs(index, link, ids)

      def pairs(index, link, ids)
        return nothing { follow(index, link, Plan::RowSet::Pairs.new(NOTHING, 0, 1)) } if ids.empty?

        lists = link.lists_sql(ids.size)
        text = lists || link.pairs_sql
        kept = @reader.kept?(link.edge)
        @reading.add(Reading::Query.new(link.association.adapter, text, ids, kept, kept && link.indexed) { |rows|
          follow(index, link, lists ? Plan::RowSet::Lists.new(rows) : Plan::RowSet::Pairs.new(rows, 0, 1))
        })
      end

      # The rows of a has_many contain their parent's key, so they serve as links.
      def own_rows(index, link, ids)
        child = @reader.reader(link.edge.node, @reading)
        return nothing { own_links(index, link, child, NOTHING) } if ids.empty?

        kept = @reader.kept?(child.node) && @reader.kept?(link.edge)
        @reading.add(Reading::Query.new(child.adapter, child.own_rows_sql(link), ids, kept, kept && link.indexed) { |rows|
          own_links(index, link, child, rows)
        })
      end

      def own_links(index, link, child, rows)
        @reader.fill(child, rows, @reading)
        @links[index] = Plan::RowSet::Pairs.new(rows, child.key_position(link), 0)
      end

      def in_row(index, link)
        return follow(index, link, @node_reader.in_column(index)) unless link.kind == :polymorphic

        columns = [0, *@node_reader.positions(index)].map { |position| ColumnValues.column(@rows, position) }
        found = link.rows(*columns, @reading.scopes)
        @links[index] = @reader.of_several_types(link.edge, found, @reading)
      end

      def follow(index, link, found)
        @links[index] = found
        visible = visible(link)
        return unless link.edge.node || visible

        ids = related_ids(link, found)
        return query_visible(index, link, ids, visible) unless link.edge.node
        return @reader.by_ids(link.edge.node, ids, @reading) unless link.may_dangle? || visible

        @reader.by_ids(link.edge.node, ids, @reading) { |related| drop(index, link, ids, related.rows) }
      end

      def visible(link)
        definition = link.edge.relationship.definition
        @reading.scopes.of(definition, link.association.adapter) if definition.scope
      end

      # Checks links to related rows that are not included.
      def query_visible(index, link, ids, visible)
        return if ids.empty?

        definition = link.edge.relationship.definition
        adapter = link.association.adapter.related(definition.model)
        column = definition.id_column
        sql = adapter.scopes.select_by_ids_sql(adapter.types.qualified(column), column, nil, visible.condition)
        @reading.add(Reading::Query.new(adapter, sql, ids) { |rows| drop(index, link, ids, rows) })
      end

      # With a viewer's scope, equal numbers of rows and ids prove nothing,
      # because several rows may have one id.
      def drop(index, link, ids, rows)
        return if visible(link).nil? && ColumnValues.count(rows) == ids.size

        @links[index] = Linkage.without_missing(@links[index], @rows, ColumnValues.column(rows, 0), ids, several: link.kind == :grouped)
      end

      def nothing
        yield
        nil
      end

      def related_ids(link, found)
        case found
        when Plan::RowSet::Lists then Ids::List.distinct(found.related_text)
        when Plan::RowSet::Pairs then ColumnValues.ids(found.rows, found.related_position).uniq
        else link.kind == :grouped ? grouped_ids(link, found.position) : ColumnValues.ids(@rows, found.position).uniq
        end
      end

      def grouped_ids(link, position)
        return Ids::List.in_column(@rows, position) if link.association.adapter.types.integer?(link.edge.relationship.definition.id_column)

        ColumnValues.ids(@rows, position).uniq.join(",").split(",").uniq
      end
    end
  end
end
