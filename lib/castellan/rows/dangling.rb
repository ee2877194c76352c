# frozen_string_literal: true

module Castellan
  module Rows
    # Links that were read from a join table alone, without those whose related row is not there: what the join would have left out.
    #
    #   Dangling.dropped(links, parents, roles, [1, 2, 3], session)   # => links; with only two roles found, those to the two
    #
    # A row fewer than ids is all that tells, so where nothing dangles nothing is looked at.
    module Dangling
      module_function

      # @param found [Plan::RowSet::InColumn, Plan::RowSet::Lists, Plan::RowSet::Pairs]
      # @param parents [Array<Array>, PG::Result] whose rows hold the links of a column
      # @param related [Array<Object>] the ids of the related rows that were found
      # @param ids [Array<Object>] those that were looked for, each once
      # @param several [Boolean] whether a column holds ids with commas between them
      # @return [Object] the same links, or pairs
      def dropped(found, parents, related, ids, several:)
        there = related.to_h { |id| [id.to_s, true] }
        return found if there.size == ids.size

        found.is_a?(Plan::RowSet::InColumn) ? of_column(found, parents, there, several) : of_pairs(found, there)
      end

      # Takes away the links to one of several types whose rows are not there.
      # @param found [Array<Array(Object, Object, Integer)>] parent, related id and position of its type
      # @param kind [Integer]
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
