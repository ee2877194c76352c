# frozen_string_literal: true

require "securerandom"

module Castellan
  module Profile
    # Records one profile from its start to its {Result}.
    #
    #   session = Session.new(depth: "sql")
    #   session.record { work }       # for each part of the work: the call, then the chunks of the body
    #   result = session.finish(path: "/users", status: 200)
    #
    # Records only the thread that calls {#record}. Always call {#finish}, because the instruments stay
    # subscribed until then.
    class Session
      LONGEST_SQL = 10_000
      SHARED = { "memory" => "memory is counted for the whole process, theirs with it",
                 "cpu" => "the samples are only of this request, and fewer than its CPU time where threads took turns",
                 "wall" => "the samples are only of this request", "objects" => "the samples are only of this request" }.freeze
      private_constant :LONGEST_SQL, :SHARED

      # @return [Recorder]
      # @return [String]
      attr_reader :recorder, :depth

      # @param depth [String] one of {Depth::NAMES}
      # @param notes [Array<String>] for {Result#notes}
      # @param traffic [Traffic, nil] counts the requests of this process
      # @param literals [Boolean] whether to keep the literal values in the SQL
      # @param request [Boolean] whether it records one request of a Rack application
      def initialize(depth: Depth::DEFAULT, notes: [], traffic: nil, literals: false, request: false)
        @depth = depth
        @notes = notes.dup
        @traffic = traffic
        @recorder = Recorder.new(literals: literals, hold_texts: depth != "memory", request: request)
        @gc_ns = @objects = 0
        start
      ensure
        close unless @started_ns # if the start failed, no caller can finish the session
      end

      # @return the result of the block
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

      # @return [String] the id of the future result
      def id = @id ||= SecureRandom.urlsafe_base64(12)

      # Stops the sampler early, so that another profile can start.
      def end_sampling
        @sampled ||= @sampling&.finish
      end

      # @return [Array<Finding>] call it after the recording
      def findings = @findings ||= Detect::Verdict.new(@recorder).findings

      # @return [Integer] nanoseconds from the start to the end, or until now
      def duration_ns = (@ended_ns || Clock.monotonic_ns) - @started_ns

      # @return [Hash] see {Result#parts}
      def parts
        sql, render, cache = %i[sql render cache].map { |kind| @recorder.exclusive(kind) }
        # Rails subtracts SQL from the view runtime only if it logs at level info.
        render = render.clamp(0, [duration_ns - sql - cache, 0].max)
        { sql_ns: sql, render_ns: render, cache_ns: cache, gc_ns: @gc_ns, outside_ns: [duration_ns - sql - render - cache, 0].max }
      end

      # Stops the recording and unsubscribes. Only the first call has an effect.
      def close
        return if @finished

        @finished = true
        @ended_ns = Clock.monotonic_ns
        overlapping # before the findings are written: requests that begin meanwhile are not in the figures
        end_sampling
        Instrument.unsubscribe
        ViewEvents.unsubscribe
      end

      # @param members [Hash] the other members of {Result}, about the request
      # @return [Result]
      def finish(**members)
        close
        Result.new(id: id, at: @at, duration_ns: duration_ns, parts: parts, queries: queries,
                   cache: timed(:layer, :outcome, @recorder.looks), spans: timed(:kind, :name, @recorder.spans),
                   objects: { count: @objects, scope: "process", overlapping: overlapping },
                   findings: findings.map { |finding| Result.plain(finding.to_h) }, depth: @depth, totals: @recorder.totals,
                   truncated: { queries: @recorder.left_out, bytes: false }, **@sampled, **members,
                   notes: [*@notes, *@sampling.notes, *own_notes, *members[:notes]])
      end

      private

      def start
        Instrument.subscribe
        Instrument.attach
        ViewEvents.subscribe
        GC.stat(:total_allocated_objects) # the first call allocates the names of all figures
        @sampling = Sampling.begin(@depth) # last, so that it does not count the code loaded above
        @mark = @traffic&.mark
        @recording = Recording.new(@recorder, Recording.current)
        @at = Clock.now.to_f
        @started_ns = Clock.monotonic_ns
      end

      def queries
        texts = Hash.new { |known, text| known[text] = Redaction.text(text, LONGEST_SQL) }
        frames = Hash.new { |known, sites| known[sites] = sites.map { |site| CallSite.frame(site) } }
        numbers = Hash.new { |known, statement| known[statement] = finding_number(*statement) }
        @recorder.log.map do |one|
          { at_ns: one.started_ns - @started_ns, duration_ns: one.duration_ns, rows: one.rows, cached: one.cached,
            sql: texts[one.sql || one.fingerprint], fingerprint: texts[one.fingerprint], frames: frames[one.sites],
            finding: (numbers[[one.fingerprint, one.owner, one.association]] if findings.any?) }
        end
      end

      # A finding has one fingerprint and one association. For a polymorphic association it has several
      # fingerprints.
      def finding_number(fingerprint, owner, association)
        through = "#{owner}##{association}" if association
        findings.index do |finding|
          next true if through && finding.association == through

          finding.fingerprint == fingerprint && (through.nil? || finding.association.nil?)
        end
      end

      def timed(first, second, events)
        events.map do |one, other, started_ns, duration_ns, bytes, age|
          { first => one.to_s, second => Redaction.text(other.to_s), at_ns: started_ns - @started_ns, duration_ns: duration_ns,
            **{ bytes: bytes, age: age }.compact }
        end
      end

      def overlapping = @overlapping ||= @mark ? @traffic.overlapping(@mark) : 0

      def own_notes
        left_out = @recorder.left_out
        [("#{left_out} queries after the first #{Recorder::MOST} are counted and not listed" if left_out.positive?),
         ("#{@recorder.spans_left_out} more cache lookups and renderings are not listed" if @recorder.spans_left_out.positive?),
         ("the recording stopped: #{@recorder.failure.class}" if @recorder.failure),
         ("#{Figures.counted(overlapping, "other request")} ran meanwhile; #{SHARED.fetch(@depth)}" if shared?)].compact
      end

      def shared? = SHARED.key?(@depth) && overlapping.positive?
    end
  end
end
