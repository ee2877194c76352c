# frozen_string_literal: true

module Castellan
  module Detect
    # Measures how the queries, time and objects of a block grow with the number of records.
    #
    #   growth = Detect.growth(scale: ->(count) { count.times { User.create! } }) { get("/users").body }
    #   growth.constant?   # => false
    #   growth.slopes      # => { "select employees.* from employees where employees.user_id = ? limit ?" => 1.0 }
    #   growth.costs       # => { ns: 210_000.0, objects: 310.5, bytes: 48.0 }, per additional record
    #   growth.to_s        # => "1.0 more queries per record at app/serializers/user_serializer.rb:14: select …"
    #
    # Runs the block with n, 2n and 4n records and fits the number of queries per shape as a + b·n. If the
    # size of the result stays the same (or, without a size, the number of loaded records), `constant?` is
    # false, because nothing shows that the block used the new records.
    class Growth
      # One run.
      # `added` is the number of records, `groups` is `{ fingerprint => [statements, site] }`, `size` is that
      # of the result or nil, and `text` is whether `size` counts bytes.
      Run = Struct.new(:added, :groups, :size, :text, :loaded, :ns, :objects, keyword_init: true)
      NOTHING = 0.05

      class << self
        # Runs the work with n records to warm up, then with n, 2n and 4n.
        # @see Detect.growth
        def measure(scale:, by:, work:)
          check(scale, by, work)
          sizes = [by, 2 * by, 4 * by]
          new(sizes.zip([0, *sizes]).map do |count, before|
            scale&.call(count - before)
            run(work, count) if before.zero?
            run(work, count)
          end)
        end

        private

        def check(scale, by, work)
          raise ConfigurationError, "by: must be 1 or more, got #{by.inspect}" unless by.is_a?(Integer) && by.positive?
          return unless scale.nil? && work.arity.zero?

          raise ConfigurationError, "no records are added: pass scale: ->(count) { create_users(count) } (RSpec: " \
                                    ".while_adding { |count| … }), or let the block take how many records to work with"
        end

        def run(work, count)
          tally = Tally.new
          objects = GC.stat(:total_allocated_objects)
          started = Clock.monotonic_ns
          result, text = Instrument.record(tally) do
            result = work.arity.zero? ? work.call : work.call(count)
            [result, text_of(result)] # a lazy body must be measured, too
          end
          ns = Clock.monotonic_ns - started
          objects = GC.stat(:total_allocated_objects) - objects
          Run.new(added: count, groups: counts(tally), size: text ? text.bytesize : size_of(result), text: !text.nil?,
                  loaded: tally.loads.sum(&:count), ns: ns, objects: objects)
        end

        def counts(tally)
          tally.groups.group_by { |group| group.shape.fingerprint }.transform_values do |groups|
            [groups.sum { |group| group.count + group.cached }, groups.max_by(&:count).busiest]
          end
        end

        # @return [String, nil] the text of a string, of a response (test or Rack), or of a body that yields
        #   strings
        def text_of(result)
          return result if result.is_a?(String)
          return text_of(result.body) if result.respond_to?(:body)

          body = response?(result) ? result.last : result
          return if !body.respond_to?(:each) || (body.equal?(result) && result.is_a?(Enumerable))

          chunks = []
          body.each { |chunk| chunk.is_a?(String) ? chunks << chunk : (return nil) }
          chunks.join
        end

        def size_of(result)
          return if result.is_a?(Numeric) || response?(result)
          return values_in(result, {}.compare_by_identity) if result.is_a?(Hash) || result.is_a?(Array)

          result.size if result.respond_to?(:size)
        end

        # Counts all values of nested hashes, arrays and lists of records. `around` holds the enclosing
        # containers, because data may be cyclic.
        def values_in(result, around)
          unless result.is_a?(Hash) || result.is_a?(Array)
            size = result.size if result.is_a?(Enumerable) && result.respond_to?(:size)
            return size.is_a?(Integer) ? size : 0 # the size of an endless range is not an Integer
          end
          return 0 if around.key?(result)

          around[result] = true
          (result.is_a?(Hash) ? result.values : result).sum { |value| 1 + values_in(value, around) }.tap { around.delete(result) }
        end

        def response?(result) = result.is_a?(Array) && result.size == 3 && result[0].is_a?(Integer) && result[1].is_a?(Hash)
      end

      # @param runs [Array<Run>] in ascending order of `added`
      def initialize(runs)
        @runs = runs.freeze
      end

      # @return [Boolean] true if no shape grows and the block used the new records
      def constant? = slopes.empty? && grew?

      # @return [Boolean] whether the result, or else the queries or the loaded records, changed with the data
      def grew?
        return @runs.map(&:size).uniq.size > 1 if @runs.all?(&:size)

        slopes.any? || @runs.last.loaded > @runs.first.loaded
      end

      # @return [Hash{String => Float}] additional queries per record, for the shapes that grow
      def slopes
        @slopes ||= @runs.flat_map { |run| run.groups.keys }.uniq
                         .to_h { |shape| [shape, slope { |run| run.groups.fetch(shape, [0]).first }] }
                         .select { |_shape, slope| slope > NOTHING }
      end

      # @return [Hash{Symbol => Float, nil}] nanoseconds, objects and bytes of the result per additional
      #   record; bytes are nil for a result without text. With three runs the time is imprecise and may be
      #   negative
      def costs
        { ns: slope(&:ns), objects: slope(&:objects), bytes: (slope(&:size) if @runs.all?(&:text)) }
      end

      # @return [String] the growing shapes with their lines, or why nothing is known
      def to_s
        return [*slopes.map { |shape, slope| steeper(shape, slope) }, cost].join("\n") if slopes.any?
        return "the queries are constant; #{cost}" if grew?

        "#{unchanged}: the added records were not part of the work"
      end

      private

      def steeper(shape, slope)
        site = @runs.last.groups.fetch(shape, [0, nil]).last
        "#{slope.round(2)} more queries per record at #{CallSite.location(site) || "an unknown place"}: #{shape}"
      end

      def unchanged
        return "the result had the same size (#{@runs.last.size}) every time" if @runs.all?(&:size)

        "the block returned nothing that has a size (return what grows, such as response.body), and loaded " \
          "#{@runs.last.loaded} records every time"
      end

      def cost
        bytes = costs[:bytes] ? format(", %.0f bytes of the result", costs[:bytes]) : ""
        time = costs[:ns].positive? ? format("%.3f ms", costs[:ns] / 1e6) : "no time that can be measured"
        format("each additional record costs %s, %.0f objects", time, costs[:objects]) + bytes
      end

      # Least squares with rationals, because one query per record must be exactly 1.0.
      def slope(&figure)
        sizes = @runs.map { |run| run.added.to_r }
        figures = @runs.map(&figure)
        mean_size = sizes.sum / sizes.size
        mean = figures.sum.to_r / figures.size
        (sizes.zip(figures).sum { |size, value| (size - mean_size) * (value - mean) } / sizes.sum { |size| (size - mean_size)**2 }).to_f
      end
    end
  end
end
