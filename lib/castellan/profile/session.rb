# frozen_string_literal: true

require "securerandom"

module Castellan
  module Profile
    # Records one profile, from its start to its {Result}.
    #
    #   session = Session.new(depth: "sql")
    #   session.record { work }       # once per part of the work: the call, then chunks of the body
    #   result = session.finish(path: "/users", status: 200)
    #
    # Records only the thread that calls {#record}. Always call {#finish}: the instruments stay subscribed
    # until then.
    class Session
      # Seconds to wait for another memory or sampling profile to end.
      WAIT = 2.0

      # @return [Recorder]
      # @return [String]
      attr_reader :recorder, :depth

      # @param depth [String] one of {Depth::NAMES}
      # @param notes [Array<String>] notes for {Result#notes}
      # @param traffic [Traffic, nil] counts the requests of this process
      # @param literals [Boolean] true keeps the SQL with its literal values
      # @param wait [Numeric] seconds, see WAIT
      # @param linger_ns [Integer] nanoseconds to stay subscribed afterwards, see {Listening}
      # @param verdicts [Detect::KnownVerdicts, nil] cached verdicts of repeated requests
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

      # @return [String] id of the result, available before the result is
      def id = @id ||= SecureRandom.urlsafe_base64(12)

      # Stops the sampler early, so that another profile can start.
      def end_sampling
        @sampled ||= @sampling.finish
      end

      # @return [Array<Finding>] findings of all that was recorded; call it after the recording
      def findings = @findings ||= @verdicts ? @verdicts.findings(@recorder) : Detect::Verdict.new(@recorder).findings

      # @return [Integer] nanoseconds from start to end, or until now
      def duration_ns = (@ended_ns || Clock.monotonic_ns) - @started_ns

      # @return [Hash] see {Result#parts}
      def parts
        sql, render, cache = %i[sql render cache].map { |kind| @recorder.exclusive(kind) }
        # Rails subtracts SQL from the view runtime only if it logs at level info.
        render = render.clamp(0, [duration_ns - sql - cache, 0].max)
        { sql_ns: sql, render_ns: render, cache_ns: cache, gc_ns: @gc_ns, outside_ns: [duration_ns - sql - render - cache, 0].max }
      end

      # Stops the recording and unsubscribes. Further calls do nothing.
      # @return [Boolean] whether this call closed it
      def close
        return false if @finished

        @finished = true
        @ended_ns = Clock.monotonic_ns
        end_sampling
        Listening.end(linger_ns: @linger_ns)
        true
      end

      # @param members [Hash] further members of {Result} about the request
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
        GC.stat(:total_allocated_objects) # the first call allocates the names of all figures
        @sampling = Sampling.take(@depth, wait: wait) # last, so that code loaded above is not counted
        @mark = @traffic&.mark
        @recording = Recording.new(@recorder, Recording.current)
        @at = Clock.now.to_f
        @started_ns = Clock.monotonic_ns
      end

      # If the session could not start, or waiting was interrupted, no caller can finish it.
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

      # Converts symbols and structs to plain JSON values.
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
