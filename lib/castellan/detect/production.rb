# frozen_string_literal: true

module Castellan
  module Detect
    # Watches some of the requests of a production server and adds up what repeats, by endpoint, fix site and association.
    #
    #   watch = Castellan::Detect.production(threshold: 5, min_ms: 300, sample: 0.1) { |finding, endpoint| Rails.logger.warn("…") }
    #   use watch.middleware                       # in config.ru: `use Castellan::Detect.production.middleware`
    #   watch.findings                             # => [{ endpoint: "GET /users", finding: a Finding, times: 12, … }]
    #
    # A shape is reported from its 5th repeat, when 300 ms have passed since its first began. The block hears of each new
    # finding once. Nothing is added to a response. Bounded: MOST findings are kept, those seen last. When the verdicts have
    # taken more than `budget` (a share of the time watched) it stops until the next hundred requests are over.
    class Production
      MOST = 200
      REST = 100

      # One line of what was added up.
      Entry = Struct.new(:endpoint, :finding, :times, :queries, :total_ns, :last_seen_at, keyword_init: true)

      # @return [Integer] nanoseconds spent in verdicts, and in the requests that were watched
      attr_reader :spent_ns, :watched_ns

      # @param threshold [Integer] statements of one shape
      # @param min_ms [Numeric] from the start of the first to the end of the last
      # @param sample [Numeric] the share of requests that is watched, above 0 and up to 1
      # @param budget [Numeric] the share of the time of watched requests that verdicts may take
      # @yield [finding, endpoint] when one is seen for the first time
      def initialize(threshold: 5, min_ms: 300, sample: 1.0, budget: 0.01, &seen)
        @limits = { repeats: Integer(threshold), min_ns: (min_ms * 1_000_000).to_i }
        @sample = Float(sample)
        @budget = Float(budget)
        check
        @seen = seen
        @entries = {}
        @lock = Mutex.new
        @spent_ns = @watched_ns = @resting = 0
        Instrument.subscribe
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
      # @return [Array] the response of the application
      def call(app, env)
        return app.call(env) unless watch?

        Instrument.attach
        tally = Tally.new
        started = Clock.monotonic_ns
        Recording.open(tally) { app.call(env) }.tap { judge(tally, env, Clock.monotonic_ns - started) }
      end

      # @return [Array<Entry>] what took the most time first
      def findings = @lock.synchronize { @entries.values.map(&:dup) }.sort_by { |entry| -entry.total_ns }

      # @return [Boolean] whether the breaker is open
      def resting? = @resting.positive?

      private

      def check
        raise ConfigurationError, "threshold: must be 2 or more, got #{@limits[:repeats]}" if @limits[:repeats] < 2
        raise ConfigurationError, "sample: must be above 0 and at most 1, got #{@sample}" unless @sample.positive? && @sample <= 1
      end

      def watch?
        return false if Castellan.off?
        return @sample >= 1 || rand < @sample unless resting?

        @lock.synchronize { @resting -= 1 if @resting.positive? }
        false
      end

      # Groups are looked at only when one of them has enough, so a request that repeats nothing is judged for free.
      def judge(tally, env, duration_ns)
        started = Clock.monotonic_ns
        keep(Verdict.new(tally, **@limits).findings, "#{env["REQUEST_METHOD"]} #{endpoint(env)}") if tally.repeats?(@limits[:repeats])
      rescue StandardError => error
        env["rack.errors"]&.puts("Castellan's detector failed: #{error.full_message(highlight: false)}")
      ensure
        spend(Clock.monotonic_ns - started, duration_ns)
      end

      # Ids in a path would make an endpoint of every record.
      def endpoint(env) = env["PATH_INFO"].to_s.gsub(%r{/(?:\d+|\h{8}-\h{4}-\h{4}-\h{4}-\h{12})(?=/|\z)}, "/:id")[0, 200]

      def keep(findings, endpoint)
        findings.each do |finding|
          key = [endpoint, finding.parent_location || finding.location, finding.association || finding.fingerprint]
          fresh = @lock.synchronize { add(key, endpoint, finding) }
          @seen&.call(finding, endpoint) if fresh
        end
      end

      # @return [Boolean] whether it was not known
      def add(key, endpoint, finding)
        known = @entries.delete(key)
        entry = known || Entry.new(endpoint: endpoint, times: 0, queries: 0, total_ns: 0)
        entry.finding = finding
        entry.times += 1
        entry.queries += finding.count
        entry.total_ns += finding.total_ns
        entry.last_seen_at = Clock.now
        @entries[key] = entry
        @entries.shift if @entries.size > MOST
        known.nil?
      end

      def spend(verdict_ns, duration_ns)
        @lock.synchronize do
          @spent_ns += verdict_ns
          @watched_ns += duration_ns
          @resting = REST if @watched_ns > 1_000_000_000 && @spent_ns > @watched_ns * @budget
        end
      end
    end
  end
end
