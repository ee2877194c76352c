# frozen_string_literal: true

require "castellan/detect/production/breaker"
require "castellan/detect/production/distribution"
require_relative "../endpoint_name"
require "castellan/detect/production/entries"
require "castellan/detect/production/judgements"
require "castellan/detect/production/metered_tally"

module Castellan
  module Detect
    # Watches some of the requests of a production server and adds up what repeats, by endpoint, fix site and association.
    #
    #   watch = Castellan::Detect.production(threshold: 5, min_ms: 300, sample: 0.1) { |finding, endpoint| Alerts.send("…") }
    #   use watch.middleware                       # in config.ru: `use Castellan::Detect.production.middleware`
    #   watch.findings.first.per_request.to_h      # => { p50: 101, p95: 150, p99: 150, max: 151 }
    #   puts watch                                 # a line for each, and what all of it has cost
    #
    # A shape is reported from its 5th statement, when 300 ms have passed since its first began. The log and the block hear of each new
    # finding once. Nothing is added to a response. Bounded: 200 findings are kept, those seen last. When watching has taken more than
    # `budget` (a share of the time watched) it stops for the next hundred requests, and for longer each time.
    #
    # In one watched request of a hundred (`evidence`) it is noted which associations were read, so that what is loaded eagerly for nothing
    # is found, too: by 20 such requests, see {Evidence}. In the others a record costs nothing. Whether a library was loaded since
    # is asked at one request in sixteen.
    class Production
      STRETCH = 15
      private_constant :STRETCH

      # @return [Evidence::Sampled] what was loaded for nothing, so far
      attr_reader :evidence

      # @param threshold [Integer] statements of one shape
      # @param min_ms [Numeric] from the start of the first to the end of the last
      # @param slow_ms [Numeric, nil] from how long one statement is a finding by itself; nil: none is
      # @param sample [Numeric] the share of requests that is watched, above 0 and up to 1
      # @param evidence [Numeric, false] the share of watched requests in which reads of associations are noted
      # @param budget [Numeric] the share of the time of watched requests that watching may take
      # @param logger [#warn, nil, false] by default what the server offers: `rack.logger`, else `rack.errors`; false for none
      # @yield [finding, endpoint] when one is seen for the first time
      def initialize(threshold: 5, min_ms: 300, slow_ms: 500, sample: 1.0, evidence: 0.01, budget: 0.01, logger: nil, &seen)
        @sample = Float(sample)
        check(threshold, min_ms, budget)
        @all = @sample >= 1
        @slow_ns = slow_ms && (slow_ms * 1_000_000).to_i
        @evidence = Evidence::Sampled.new(evidence)
        @logger = logger
        @seen = seen
        @judgements = Judgements.new(repeats: Integer(threshold), min_ns: (min_ms * 1_000_000).to_i)
        @entries = Entries.new
        @breaker = Breaker.new(Float(budget))
        @telling = 0.0 # until the first was metered
        @requests = @watched_ns = @spent_ns = 0 # that the breaker was not told of yet
        @stretch = 0
        @meter_at = 0
        @stopped = Castellan.off?
        Instrument.subscribe
      end

      # Takes a logger where none was given, because there is none yet when an application is configured.
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

      # What is called for every request is cold: the request's own work has pushed it out of the caches of the processor. So it counts how
      # many methods that are, above all, and what need not be asked each time is asked once in a stretch of requests.
      # @param app [#call]
      # @return [Array] the response of the application
      def call(app, env)
        return begin_stretch(app, env) if (@stretch -= 1) < 0 # threads that count at the same moment may count one request less

        watch_plainly(app, env)
      end

      # @return [Array<Entries::Entry>] what took the most time first; without what was loaded for nothing until somebody read it
      def findings = @entries.all.select { |entry| @evidence.holds?(entry.finding) }

      # @return [Boolean] whether the breaker is open
      def resting? = @breaker.open?

      # @return [Hash{Symbol => Numeric}] what watching has cost: requests watched, their nanoseconds, the detector's among them, their
      #   share, and how often the breaker opened
      def cost
        requests, watched_ns, spent_ns = unsettled
        watched_ns += @breaker.watched_ns
        spent_ns += @breaker.spent_ns
        { requests: @breaker.requests + requests, watched_ns: watched_ns, spent_ns: spent_ns,
          share: watched_ns.zero? ? 0.0 : spent_ns.fdiv(watched_ns), times_resting: @breaker.times_open }
      end

      # @return [String]
      def to_s
        cost = format("watched %<requests>d requests for %<share>.3f %% of their time, rested %<times_resting>d times",
                      **self.cost, share: self.cost[:share] * 100)
        [cost, *findings].join("\n")
      end

      # Ends it: requests are passed on and nothing is listened to for it.
      def stop
        Instrument.unsubscribe unless @stopped
        @stopped = true
        @stretch = 0
      end

      private

      def check(threshold, min_ms, budget)
        raise ConfigurationError, "threshold: must be 2 or more, got #{threshold}" if threshold < 2
        raise ConfigurationError, "min_ms: must not be negative, got #{min_ms}" if min_ms.negative?
        raise ConfigurationError, "sample: must be above 0 and at most 1, got #{@sample}" unless @sample.positive? && @sample <= 1
        raise ConfigurationError, "budget: must not be negative, got #{budget}" if budget.negative?
      end

      def watch?
        return false if @stopped
        return @all || rand < @sample unless @breaker.open?

        @breaker.rest
        false
      end

      # A request at which is asked whether to watch at all, whether another library was loaded, whether to note what is read, and whether
      # to meter. The first tally is metered, so that something is known at once.
      def begin_stretch(app, env)
        return app.call(env) unless watch?

        Instrument.attach
        use = @evidence.begin(metered: true)
        @stretch = @evidence.pass(STRETCH) if @all
        recording = metered? ? MeteredTally : Tally
        use ? Recording.open(use) { watch(app, env, recording.recording(@slow_ns), use) } : watch(app, env, recording.recording(@slow_ns))
      end

      def metered?
        requests = @breaker.requests + @requests
        return false if requests < @meter_at

        @meter_at = requests + MeteredTally::EVERY
        true
      end

      # Nearly every request: in one call where there is the extension, which may pass over {over} where nothing can have been found.
      if Castellan.const_defined?(:NativeProduction)
        include NativeProduction
      else
        def watch_plainly(app, env) = watch(app, env, Tally.recording(@slow_ns))
      end

      # Called by the extension, too, as {over} and {settle} are.
      def answer(response, env, recording, started_ns)
        WatchedRequest.answer(response, recording) { over(recording.observer, nil, env, Clock.monotonic_ns - started_ns) }
      end

      def watch(app, env, recording, use = nil)
        started = Clock.monotonic_ns
        WatchedRequest.call(app, env, recording) { over(recording.observer, use, env, Clock.monotonic_ns - started) }
      end

      # Of most requests there is nothing to judge, which takes less than to look at the clock.
      def over(tally, use, env, duration_ns)
        use || !tally.once? ? judge(tally, use, env, duration_ns) : spend(tally, 0, duration_ns, env)
      end

      def judge(tally, use, env, duration_ns)
        started = Clock.monotonic_ns
        look(tally, use, env)
      rescue StandardError => error
        log(env, "Castellan's detector failed: #{error.full_message(highlight: false)}")
      ensure
        spend(tally, Clock.monotonic_ns - started + (use ? use.spent_ns : 0), duration_ns, env)
      end

      def look(tally, use, env)
        vain = use ? @evidence.finish(use, tally) : []
        raise tally.failure if tally.failure

        found = @judgements.of(tally)
        @evidence.leave_alone(found.map(&:first)) if found.any?
        found += vain.map { |finding| [finding, 1, 0] }
        keep(found, EndpointName.of(env), env) if found.any?
      end

      def spend(tally, spent_ns, duration_ns, env)
        learn(tally.spent_ns.fdiv(duration_ns)) if tally.is_a?(MeteredTally) && duration_ns.positive?
        @requests += 1
        @spent_ns += spent_ns
        @watched_ns += duration_ns
        settle(env) if @watched_ns >= Breaker::WINDOW_NS
      end

      # Tells the breaker, which judges once in a second of requests.
      def settle(env)
        requests, watched_ns, spent_ns = unsettled
        @requests = @watched_ns = @spent_ns = 0
        share = @breaker.spend(spent_ns, watched_ns, requests) or return
        @stretch = 0
        log(env, format("Castellan's detector took %.1f %% of the time that it watched, and rests", share * 100))
      end

      # @return [Array<Integer>] requests, their nanoseconds, and the detector's, of which the breaker knows nothing yet
      def unsettled = [@requests, @watched_ns, @spent_ns + (@telling * @watched_ns).to_i]

      # The share of a request that its statements take to be told, from those that were metered, the last ones above all.
      def learn(share)
        @telling = @telling.zero? ? share : @telling * 0.8 + share * 0.2
      end

      def keep(found, endpoint, env)
        found.each do |finding, count, total_ns|
          next unless @entries.add(endpoint, finding, count, total_ns)

          log(env, "#{endpoint}: #{finding.of_many_requests? ? finding : Finding.new(**finding.to_h, count: count, total_ns: total_ns)}")
          @seen&.call(finding, endpoint)
        end
      end

      def log(env, text)
        return if @logger == false

        logger = @logger || env["rack.logger"]
        logger ? logger.warn(text) : env["rack.errors"]&.puts(text)
      end
    end
  end
end
