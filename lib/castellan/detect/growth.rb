# frozen_string_literal: true

module Castellan
  module Detect
    # How the queries of some work grow with the data: counted at three sizes, fitted per shape as a + b·n.
    #
    #   growth = Detect.growth(scale: ->(count) { count.times { User.create! } }) { get("/users").body }
    #   growth.constant?   # => false
    #   growth.slopes      # => { "select employees.* from employees where employees.user_id = ? limit ?" => 1.0 }
    #   growth.to_s        # => "1.0 more queries a record at app/serializers/user_serializer.rb:14: select …"
    #
    # What repeats only because there is more data cannot hide here, whatever its verdict. Refuses to say that it is constant
    # when the size of the result did not change: then the new records were not part of the work.
    class Growth
      # One run.
      Run = Struct.new(:added, :groups, :size, keyword_init: true)
      NOTHING = 0.05

      # @param runs [Array<Run>] in growing order
      def initialize(runs)
        @runs = runs.freeze
      end

      # @return [Boolean]
      def constant? = grew? && slopes.empty?

      # @return [Boolean] whether the result changed its size with the data; true where the block returned none
      def grew? = @runs.none?(&:size) || @runs.map(&:size).uniq.size > 1

      # @return [Hash{String => Float}] queries per record added, of the shapes that grow
      def slopes
        @slopes ||= shapes.to_h { |shape| [shape, slope(shape)] }.select { |_shape, slope| slope > NOTHING }
      end

      # @return [String]
      def to_s
        return "the result had the same size (#{@runs.last.size}) every time: the added records were not part of the work" unless grew?
        return "the queries are constant" if slopes.empty?

        slopes.map { |shape, slope| "#{slope.round(2)} more queries a record at #{location(shape)}: #{shape}" }.join("\n")
      end

      private

      def shapes = @runs.flat_map { |run| run.groups.keys }.uniq

      # Least squares.
      def slope(shape)
        sizes = @runs.map { |run| run.added.to_f }
        counts = @runs.map { |run| run.groups.key?(shape) ? run.groups[shape].first : 0 }
        mean_size = sizes.sum / sizes.size
        mean_count = counts.sum.to_f / counts.size
        sizes.zip(counts).sum { |size, count| (size - mean_size) * (count - mean_count) } / sizes.sum { |size| (size - mean_size)**2 }
      end

      def location(shape) = CallSite.location(@runs.last.groups.fetch(shape, [0, nil]).last) || "an unknown place"
    end
  end
end
