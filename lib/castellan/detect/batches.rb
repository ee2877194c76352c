# frozen_string_literal: true

module Castellan
  module Detect
    # Tells the statements that fetch a large set piece by piece, and what is preloaded for each piece, from those that are asked
    # for record by record.
    #
    #   batches = Batches.new(tally, links)
    #   batches.piece?(group)     # => true of find_each, in_batches, slices of ids, and of their preloads
    #   batches.first?(group)     # => true of the first page of a set that is read twice
    class Batches
      # @param tally [Tally]
      # @param links [Links]
      def initialize(tally, links)
        @groups = tally.groups
        @loads = tally.loads
        @links = links
      end

      # @return [Boolean] whether a large set is fetched in pieces, or this is preloaded for each piece of one
      def piece?(group)
        return true if group.preload?
        return false if @links.walk?(group)

        fetched?(group) || preloaded?(group) || levels?(group)
      end

      # A set that is read in batches twice begins twice; its other pages are no finding either.
      def first?(group)
        return false unless group.shape.single? && group.shape.order

        @groups.any? do |other|
          other.shape.table == group.shape.table && other.shape.paged? && other.shape.order == group.shape.order &&
            same_site?(other, group) && other.different > 1 && fetched?(other)
        end
      end

      private

      # Whether its own conditions go on from statement to statement.
      def fetched?(group)
        return false if !group.shape.batch? || @links.walk?(group) || (group.count > 1 && group.different == 1)

        group.pieces.nil? || whole?(group)
      end

      # Whether a tree is read from its root, a level at a time.
      def levels?(group)
        keyed?(group.shape) && group.shape.listed? && group.pieces&.apart? && @links.preloads?(group, group) && rooted?(group) &&
          upwards?(group) && !siblings(group).intersect?([group.count, group.count + singly(group).sum(&:count)])
      end

      # Whether records of the table were read before, by something else than what the lists are of.
      def rooted?(group)
        column = group.shape.list_column
        @groups.any? do |other|
          shape = other.shape
          other.order < group.order && shape.table == group.shape.table && !shape.write? && !shape.existence? &&
            shape.list_column != column && !shape.equal.include?(column)
        end
      end

      # By their own key records are the parents of those before, and there are no more of them.
      def upwards?(group)
        shape = group.shape
        key = shape.models.first && shape.library.primary_key(shape.models.first)
        shape.list_column != key || group.pieces.narrowing?
      end

      # The same of one value, which is no list.
      def singly(group)
        shape = group.shape
        @groups.select do |other|
          other.shape.table == shape.table && other.shape.equal.sort == [*shape.equal, shape.list_column].sort && same_site?(other, group)
        end
      end

      # What is summed up over ranges is a piece of a set only where the same set is paged.
      def whole?(group)
        shape = group.shape
        return false unless group.pieces.batch?(shape, siblings(group), group.count)
        return false if shape.listed? && group.pieces.shared? && !overlapping?(group)

        !shape.calculation? || shape.listed? || before(group).any? { |other| other.shape.table == shape.table && other.shape.paged? }
      end

      # Other reads of which there are as many; the first page of a set is a statement of its own, so it may be one more.
      def before(group)
        @groups.select { |other| other.order < group.order && other.count + 1 >= group.count && !other.shape.write? }
      end

      # Whether lists with values in common may be of batches: what belongs to the records of each batch.
      def overlapping?(group)
        @links.led_to?(group) || @groups.any? { |other| other.shape.paged? && !same?(other, group) && same_site?(other, group) }
      end

      def siblings(group) = @loads.select { |load| load.order < group.order }.map(&:count)

      # Whether lists of keys were read for each piece of what else was read, as a preload by hand is.
      def preloaded?(group)
        return false unless keyed?(group.shape) && group.shape.listed? && group.different > 1

        before(group).any? { |other| same_site?(other, group) && @links.preloads?(other, group) }
      end

      def keyed?(shape)
        shape.equal.size + (shape.listed? ? 1 : 0) >= 1 && !shape.write? && !shape.single? && !shape.calculation? && !shape.existence? &&
          !shape.volatile?
      end

      # What was asked in several threads is added up anew each time.
      def same?(one, other)
        one.shape.key == other.shape.key && one.association == other.association && one.owner.equal?(other.owner)
      end

      def same_site?(one, other) = one.sites.keys.intersect?(other.sites.keys)
    end
  end
end
