# frozen_string_literal: true

require_relative "../endpoint_name"
require_relative "production/entries"

module Castellan
  module Detect
    # Samples the requests of a server and sums up repeated queries by endpoint and line to change.
    #
    #   watch = Castellan::Detect.production(sample: 0.1) { |finding, endpoint| Alerts.send("#{endpoint}: #{finding}") }
    #   use watch.middleware                       # in config.ru
    #   watch.findings.first.per_request.to_h      # => { p50: 101, p95: 150, p99: 150, max: 151 }
    #
    # Reports a query shape that one request sends at least 5 times in at least 300 ms. Each new finding is
    # logged and yielded once, at most REPORTS_A_MINUTE per minute; {#findings} returns the last 200.
    # Responses do not change. Thread-safe.
    class Production
      include WatchedRequest

      REPORTS_A_MINUTE = 10

      # @return [Evidence] the unused eager loads so far
      attr_reader :evidence
      # @return [Integer] the number of observed requests
      attr_reader :requests

      # @param threshold [Integer] the number of queries of the same shape that make a finding, 2 or more
      # @param min_ms [Numeric] the minimum milliseconds from the first to the last of them
      # @param slow_ms [Numeric, nil] report a single query that takes at least this many milliseconds; nil
      #   disables this
      # @param sample [Numeric] the share of requests to observe, above 0 and up to 1
      # @param evidence [Numeric, false] the share of these requests in which to look for unused eager loads
      #   ({Evidence})
      # @param logger [#warn, nil, false] by default `rack.logger` if it takes warnings, else `rack.errors`; false disables the log
      # @yield [finding, endpoint] each new finding
      # @raise [ConfigurationError] if a value is out of range
      def initialize(threshold: 5, min_ms: 300, slow_ms: 500, sample: 0.1, evidence: false, logger: nil, &report)
        @threshold = Integer(number(:threshold, threshold, "a number of 2 or more", 5) { threshold >= 2 })
        @min_ns = (number(:min_ms, min_ms, "milliseconds, 0 or more", 300) { !min_ms.negative? } * 1_000_000).to_i
        @slow_ns = slow_ms && (number(:slow_ms, slow_ms, "milliseconds, 0 or more, or nil", 500) { !slow_ms.negative? } * 1_000_000).to_i
        @sample = Float(number(:sample, sample, "a number above 0 and at most 1", 0.1) { sample.positive? && sample <= 1 })
        @evidence = Evidence.new(evidence)
        @logger = logger
        @report = report
        @entries = Entries.new
        @lock = Mutex.new
        @requests = @reported = @held = 0
        @minute_ns = Clock.monotonic_ns
        @stopped = Castellan.off?
        Instrument.subscribe
      end

      # Sets the logger if none was given. Rails has no logger yet while the application is configured.
      # @param logger [#warn, nil]
      # @return [self]
      def log_to(logger)
        @logger = logger if @logger.nil?
        self
      end

      # @return [Class] a Rack middleware
      def middleware
        watch = self
        Class.new do
          define_method(:initialize) { |app| @app = app }
          define_method(:call) { |env| watch.call(@app, env) }
        end
      end

      # @param app [#call]
      # @param env [Hash] the Rack environment
      # @return [Array] the response of the application
      def call(app, env)
        return app.call(env) if @stopped || rand >= @sample

        @requests += 1 # not atomic, may miss one
        watch(app, env) { |tally, use| finish(tally, use, env) }.first
      end

      # @return [Array<Entries::Entry>] by descending total time; without eager loads that were used since
      def findings = @entries.all.select { |entry| @evidence.holds?(entry.finding) }

      # @return [String] one line per finding
      def to_s = ["watched #{@requests} requests", *findings].join("\n")

      # Stops observing; requests then pass through.
      # @return [void]
      def stop
        Instrument.unsubscribe unless @stopped
        @stopped = true
      end

      private

      # Called at the end of the body. A verdict reads models and source files, which takes about 1 ms, so it
      # only runs if enough queries repeat. Other requests cost one comparison.
      def finish(tally, use, env)
        return if use.nil? && tally.no_repeats?

        unread = use ? @evidence.finish(use, tally) : []
        raise tally.failure if tally.failure

        repeated = tally.repeats?(@threshold, @min_ns)
        found = repeated ? Verdict.new(tally, repeats: @threshold, min_ns: @min_ns).findings : tally.single_findings
        @evidence.observe([], found)
        (found + unread).each { |finding| announce(finding, EndpointName.of(env), env) }
      rescue StandardError, ScriptError, SystemStackError => error
        log(env, "Castellan's detector failed: #{error.full_message(highlight: false)}")
      end

      def announce(finding, endpoint, env)
        return unless @entries.add(endpoint, finding)

        held = @lock.synchronize { rate } or return
        log(env, "#{held} more findings were not logged: at most #{REPORTS_A_MINUTE} are logged in a minute") if held.positive?
        log(env, "#{endpoint}: #{finding}")
        @report&.call(finding, endpoint)
      end

      def number(name, value, type, example)
        OptionCheck.check(self.class, name, value, type, example) { OptionCheck.number?(value) && yield }
      end

      # @return [Integer, nil] the number of findings that were suppressed in the previous minute; nil to
      #   suppress this one
      def rate
        now = Clock.monotonic_ns
        held = @held
        @minute_ns, @reported, @held = [now, 0, 0] if now - @minute_ns >= 60_000_000_000
        return (@held += 1) && nil if @reported >= REPORTS_A_MINUTE

        @reported += 1
        held
      end
    end
  end
end
