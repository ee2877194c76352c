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
      # @param related [Array<Array>, PG::Result] read by these ids, each at most once
      # @param ids [Array<Integer>] each once
      # @param session [ColumnValues]
      # @return [Object] the same links, or pairs
      def dropped(found, parents, related, ids, session)
        return found if session.count(related) == ids.size

        there = session.column(related, 0).to_h { |id| [id.to_s, true] }
        found.is_a?(Plan::RowSet::InColumn) ? of_column(found, parents, there) : of_pairs(found, there, session)
      end

      def of_column(found, parents, there)
        pairs = parents.flat_map do |row|
          row[found.position].to_s.split(",").filter_map { |id| [row[0], id] if there[id] }
        end
        Plan::RowSet::Pairs.new(pairs, 0, 1)
      end

      def of_pairs(found, there, session)
        found = found.pairs if found.is_a?(Plan::RowSet::Lists)
        parents, related = [found.parent_position, found.related_position].map { |position| session.column(found.rows, position) }
        Plan::RowSet::Pairs.new(parents.zip(related).select { |_, id| there[id.to_s] }, 0, 1)
      end
      private_class_method :of_column, :of_pairs
    end
  end
end
