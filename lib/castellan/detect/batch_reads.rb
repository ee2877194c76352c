# frozen_string_literal: true

module Castellan
  module Detect
    # Recognizes batch reads of a large set, and their preloads, so that they are not reported as N+1.
    #
    #   batches = BatchReads.new(tally, links)
    #   batches.piece?(group)     # => true for find_each, in_batches, slices of ids, and for their preloads
    #   batches.first?(group)     # => true for the first page of a set that is read twice
    class BatchReads
      def initialize(tally, links)
        @groups = tally.groups
        @loads = tally.loads
        @links = links
      end

      # Whether the group reads a large set in batches, or preloads an association for each batch.
      def piece?(group)
        return true if group.preload?
        return false if @links.walk?(group)

        fetched?(group) || preloaded?(group) || levels?(group)
      end

      # Reading a set in batches twice repeats the query for its first page. This is not a finding either.
      def first?(group)
        shape = group.shape
        shape.single? && shape.order && @groups.any? do |other|
          other.shape.table == shape.table && other.shape.paged? && other.shape.order == shape.order &&
            same_site?(other, group) && other.different > 1 && fetched?(other)
        end
      end

      private

      def fetched?(group)
        return false if !group.shape.batch? || @links.walk?(group) || (group.count > 1 && group.different == 1)

        group.pieces.nil? || whole?(group)
      end

      def levels?(group)
        keyed?(group.shape) && group.shape.listed? && group.pieces && @links.preloads?(group, group) && rooted?(group) &&
          !siblings(group).intersect?([group.count, group.count + singly(group).sum(&:count)])
      end

      # Whether an earlier statement found records of the table by another column: the roots of the tree.
      def rooted?(group)
        column = group.shape.list_column
        before(group).any? do |other|
          shape = other.shape
          shape.table == group.shape.table && !shape.existence? && shape.list_column != column && !shape.equal.include?(column)
        end
      end

      # The same statement with a single value instead of the list.
      def singly(group)
        shape = group.shape
        @groups.select do |other|
          other.shape.table == shape.table && other.shape.equal.sort == [*shape.equal, shape.list_column].sort && same_site?(other, group)
        end
      end

      # An aggregate over ranges is a batch read only if the same set is also paged.
      def whole?(group)
        shape = group.shape
        return false unless group.pieces.batch?(shape, siblings(group), group.count)

        !shape.calculation? || shape.listed? || before(group).any? { |other| other.shape.table == shape.table && other.shape.paged? }
      end

      def before(group) = @groups.select { |other| other.order < group.order && !other.shape.write? }

      def siblings(group) = @loads.select { |load| load.order < group.order }.map(&:count)

      # Whether the group reads a list of keys for each batch of another read, like a manual preload.
      def preloaded?(group)
        return false unless keyed?(group.shape) && group.shape.listed? && group.different > 1

        before(group).any? do |other|
          same_site?(other, group) && (other.count == 1 || piece?(other)) && @links.preloads?(other, group) &&
            !@links.owners_vary?(other, group)
        end
      end

      def keyed?(shape) = (shape.listed? || shape.equal.any?) && shape.records? && !shape.single? && !shape.volatile?

      def same_site?(one, other) = one.sites.keys.intersect?(other.sites.keys)
    end
  end
end
