# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Lays out a request as a timeline with a lane for each query group, each rendering, and the caches.
      #
      #   Timeline.new(result).lanes.first.marks  # => [Mark], in thousandths of the width
      #
      # Merges marks that touch or overlap, so that 50,000 queries make the page no larger than 500.
      class Timeline
        WIDTH = 1000.0
        LEAST = 1.5
        MOST_LANES = 12
        TICKS = 4
        private_constant :LEAST, :MOST_LANES, :TICKS

        # `kind` is a CSS class, `finding` the index of a finding or nil.
        Lane = Struct.new(:kind, :label, :count, :total_ns, :finding, :marks)
        Mark = Struct.new(:x, :width, :count, :at_ns, :duration_ns)

        # @param result [Result]
        # @param whole_ns [Integer] the duration of the full width; pass the same for two requests to share a
        #   scale
        def initialize(result, whole_ns: result.duration_ns)
          @result = result
          @whole_ns = [whole_ns, 1].max
        end

        # @return [Array<Lane>]
        def lanes = query_lanes + span_lanes + cache_lane

        # @return [Array<(Float, Integer)>] positions on the axis and their nanoseconds
        def ticks = (0..TICKS).map { |n| [WIDTH * n / TICKS, @whole_ns * n / TICKS] }

        private

        def query_lanes
          shown, rest = groups.partition.with_index { |_, index| index < MOST_LANES }
          lanes = shown.map { |group| lane("sql", group.label, group.queries, group.finding) }
          rest.any? ? lanes << lane("sql", "#{rest.size} other statements", rest.flat_map(&:queries), nil) : lanes
        end

        def groups = QueryGroup.all(@result.queries)

        def span_lanes
          @result.spans.group_by { |span| [span[:kind], span[:name]] }.first(MOST_LANES).map do |(kind, name), spans|
            lane(kind.to_s, name.to_s.empty? ? kind : name, spans, nil)
          end
        end

        def cache_lane = @result.cache.empty? ? [] : [lane("cache", "caches", @result.cache, nil)]

        def lane(kind, label, events, finding)
          Lane.new(kind, label, events.size, events.sum { |event| event[:duration_ns].to_i }, finding, marks(events))
        end

        def marks(events)
          events.sort_by { |event| event[:at_ns].to_i }.each_with_object([]) do |event, marks|
            mark = mark(event)
            last = marks.last
            last && mark.x <= last.x + last.width ? join(last, mark) : marks << mark
          end
        end

        def mark(event)
          at, duration = event.values_at(:at_ns, :duration_ns).map(&:to_i)
          width = [WIDTH * duration / @whole_ns, LEAST].max
          Mark.new((WIDTH * at / @whole_ns).clamp(0, WIDTH - LEAST).round(2), width.clamp(LEAST, WIDTH).round(2), 1, at, duration)
        end

        def join(last, mark)
          last.width = ([last.x + last.width, mark.x + mark.width].max - last.x).round(2)
          last.count += 1
          last.duration_ns += mark.duration_ns
        end
      end
    end
  end
end
