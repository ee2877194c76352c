# frozen_string_literal: true

module Castellan
  module Rows
    # Drops links whose related row does not exist, after reading them from a join table alone.
    #
    #   Dangling.dropped(links, parents, [1, 2], [1, 2, 3], several: false)   # => links, without those to 3
    #
    # If all ids were found, the links are returned unchanged, without a check of each.
    module Dangling
      module_function

      # @param found [Plan::RowSet::InColumn, Plan::RowSet::Lists, Plan::RowSet::Pairs]
      # @param parents [Array<Array>, PG::Result] the parents' rows, one column of which may hold the links
      # @param related [Array<Object>] the ids of the related rows that were found
      # @param ids [Array<Object>] the ids that were looked up, without duplicates
      # @param several [Boolean] whether the column holds comma-separated ids
      # @return [Object] the same links, or Plan::RowSet::Pairs
      def dropped(found, parents, related, ids, several:)
        there = related.to_h { |id| [id.to_s, true] }
        return found if there.size == ids.size

        found.is_a?(Plan::RowSet::InColumn) ? of_column(found, parents, there, several) : of_pairs(found, there)
      end

      # Removes the links to one type of a polymorphic relationship whose rows do not exist.
      # @param found [Array<Array(Object, Object, Integer)>] parent id, related id and type position
      # @param kind [Integer] the position of the type
      # @param related [Array<Array>, PG::Result] the rows of that type that were found
      def reject!(found, kind, related)
        there = ColumnValues.column(related, 0).to_h { |id| [id.to_s, true] }
        found.reject! { |_, id, other| other == kind && !there[id.to_s] }
      end

      def of_column(found, parents, there, several)
        columns = [0, found.position].map { |position| ColumnValues.column(parents, position) }
        pairs = columns.reduce(:zip).flat_map do |parent, value|
          ids = several ? value.to_s.split(",") : [value].compact
          ids.filter_map { |id| [parent, id] if there[id.to_s] }
        end
        Plan::RowSet::Pairs.new(pairs, 0, 1)
      end

      def of_pairs(found, there)
        found = found.pairs if found.is_a?(Plan::RowSet::Lists)
        parents, related = [found.parent_position, found.related_position].map { |position| ColumnValues.column(found.rows, position) }
        Plan::RowSet::Pairs.new(parents.zip(related).select { |_, id| there[id.to_s] }, 0, 1)
      end
      private_class_method :of_column, :of_pairs
    end
  end
end
