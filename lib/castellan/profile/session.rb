# frozen_string_literal: true

require "securerandom"

module Castellan
  module Profile
    # One profile under way, from its first moment to its {Result}.
    #
    #   session = Session.new(depth: "sql")
    #   session.record { work }       # as often as there are parts of the work: a call, then pieces of a body
    #   result = session.finish(path: "/users", status: 200)
    #
    # Records the thread that runs a part, and no other. Whoever opens a session must finish it, because the instruments listen until then.
    class Session
      # How long one waits for another profile of memory or samples to end.
      WAIT = 2.0

      # @return [Recorder]
      # @return [String]
      attr_reader :recorder, :depth

      # @param depth [String] of {Depth::NAMES}
      # @param notes [Array<String>]
      # @param traffic [Traffic, nil] of the requests of this process
      # @param literals [Boolean] whether statements are kept as they were sent
      # @param wait [Numeric] seconds
      # @param linger_ns [Integer] how long to listen on when it is over, see {Listening}
      # @param verdicts [Detect::KnownVerdicts, nil] on requests that are profiled again and again
      def initialize(depth: Depth::DEFAULT, notes: [], traffic: nil, literals: false, wait: WAIT, linger_ns: 0, verdicts: nil)
        @depth = depth
        @notes = notes.dup
        @traffic = traffic
        @literals = literals
        @recorder = Recorder.new(literals: literals, hold_texts: depth != "memory")
        @gc_ns = @objects = 0
        @linger_ns = linger_ns
        @verdicts = verdicts
        Listening.begin
        start(wait)
      ensure
        abandon unless @started_ns
      end

      # @return what the block returns
      def record(&block)
        return yield if @finished || @inside

        begin
          @inside = true
          gc_ns = GC.total_time
          objects = GC.stat(:total_allocated_objects)
          Recording.resume(@recording) { @sampling.around(&block) }
        ensure
          @objects += GC.stat(:total_allocated_objects) - objects
          @gc_ns += GC.total_time - gc_ns
          @inside = false
        end
      end

      # @return [String] of the result, known before there is one
      def id = @id ||= SecureRandom.urlsafe_base64(12)

      # Ends what only one may have at a time, before the rest.
      def end_sampling
        @sampled ||= @sampling.finish
      end

      # @return [Array<Finding>] of all that was recorded; asked for when it is over
      def findings = @findings ||= @verdicts ? @verdicts.findings(@recorder) : Detect::Verdict.new(@recorder).findings

      # @return [Integer] nanoseconds since it began, or until it ended
      def duration_ns = (@ended_ns || Clock.monotonic_ns) - @started_ns

      # @return [Hash] see {Result#parts}
      def parts
        sql, render, cache = %i[sql render cache].map { |kind| @recorder.exclusive(kind) }
        render = render.clamp(0, [duration_ns - sql - cache, 0].max) # Rails takes SQL off its views' time only where it logs at info
        { sql_ns: sql, render_ns: render, cache_ns: cache, gc_ns: @gc_ns, outside_ns: [duration_ns - sql - render - cache, 0].max }
      end

      # Stops listening. A second time it does nothing.
      # @return [Boolean] whether it was the first
      def close
        return false if @finished

        @finished = true
        @ended_ns = Clock.monotonic_ns
        end_sampling
        Listening.end(linger_ns: @linger_ns)
        true
      end

      # @param members [Hash] of {Result}: what is known of the request
      # @return [Result]
      def finish(**members)
        close
        notes = [*@notes, *@sampling.notes, *own_notes, *members.delete(:notes)]
        Result.new(id: id, at: @at, duration_ns: duration_ns, parts: parts, objects: objects,
                   queries: QueryRows.new(@recorder, findings, from_ns: @started_ns, literals: @literals).to_table,
                   cache: looks, spans: spans, findings: findings.map { |finding| plain(finding) }, depth: @depth, notes: notes,
                   totals: @recorder.totals, truncated: { queries: @recorder.left_out, bytes: false }, **end_sampling, **members)
      end

      private

      def start(wait)
        GC.stat(:total_allocated_objects) # its first call makes the names of all figures
        @sampling = Sampling.take(@depth, wait: wait) # last: what is loaded for the rest is not the application's memory
        @mark = @traffic&.mark
        @recording = Recording.new(@recorder, Recording.current)
        @at = Clock.now.to_f
        @started_ns = Clock.monotonic_ns
      end

      # Nobody can finish a session that could not begin, or whose wait was broken off.
      def abandon
        @sampling&.finish
        Listening.end
      end

      def objects
        { count: @objects, scope: "process", overlapping: overlapping }
      end

      def overlapping = @overlapping ||= @traffic ? @traffic.overlapping(@mark) : 0

      def looks
        @recorder.looks.map do |layer, outcome, started_ns, duration_ns|
          { layer: layer.to_s, outcome: outcome.to_s, at_ns: started_ns - @started_ns, duration_ns: duration_ns }
        end
      end

      def spans
        @recorder.spans.map do |kind, name, started_ns, duration_ns|
          { kind: kind.to_s, name: Redaction.text(name.to_s), at_ns: started_ns - @started_ns, duration_ns: duration_ns }
        end
      end

      # As JSON would have it.
      def plain(value)
        case value
        when Finding, Hash then value.to_h.transform_values { |one| plain(one) }
        when Array then value.map { |one| plain(one) }
        when Symbol then value.to_s
        else value
        end
      end

      def own_notes
        left_out = @recorder.left_out
        [("#{left_out} queries after the first #{Recorder::MOST} are counted and not listed" if left_out.positive?),
         ("#{@recorder.spans_left_out} more looks into caches and renderings are not listed" if @recorder.spans_left_out.positive?),
         ("the recording stopped: #{@recorder.failure.class}" if @recorder.failure),
         ("#{overlapping == 1 ? "1 other request" : "#{overlapping} other requests"} ran meanwhile; #{shared}" if shared?)].compact
      end

      def shared? = @depth != "sql" && overlapping.positive?

      def shared
        case @depth
        when "memory" then "memory is counted for the whole process, theirs with it"
        when "cpu" then "samples are of this request alone, and fewer than its CPU time where theirs took turns with it"
        else "samples are of this request alone"
        end
      end
    end
  end
end
