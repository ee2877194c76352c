# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # Adds up what the detector costs, and says when it has cost too much.
      #
      #   breaker = Breaker.new(0.01)
      #   breaker.spend(200_000, 10_000_000)   # of 10 ms the detector took 0.2
      #   breaker.share                        # => 0.02
      #   breaker.open?                        # => whether nothing should be watched
      #
      # Judged whenever a second of requests was watched: past the budget it is open for REST requests, for twice as many the next time,
      # up to MOST; a second within the budget makes it forgive. May be asked by several threads.
      class Breaker
        WINDOW_NS = 1_000_000_000
        REST = 100
        MOST = 12_800

        # @return [Integer] nanoseconds of the detector, and of the requests that were watched
        attr_reader :spent_ns, :watched_ns
        # @return [Integer] requests that were watched, and how often it opened
        attr_reader :requests, :times_open

        # @param budget [Float] a share of the time that is watched
        def initialize(budget)
          @budget = budget
          @lock = Mutex.new
          @spent_ns = @watched_ns = @requests = @times_open = 0
          @resting = 0
          @rest = REST
          begin_window
        end

        # @return [Boolean]
        def open? = @resting > 0

        # @return [Float] what it has cost of the time that was watched
        def share = @watched_ns.zero? ? 0.0 : @spent_ns.fdiv(@watched_ns)

        # Told of a request that is not watched because it is open.
        def rest
          @lock.synchronize { @resting -= 1 if @resting.positive? }
        end

        # Told of requests that were watched.
        # @return [Float, nil] the share that was too much, when it opens
        def spend(spent_ns, watched_ns, requests = 1)
          @lock.synchronize do
            @requests += requests
            @spent_ns += spent_ns
            @watched_ns += watched_ns
            judge(@spent_ns - @spent_before, @watched_ns - @watched_before) if @watched_ns - @watched_before >= WINDOW_NS
          end
        end

        private

        def judge(spent_ns, watched_ns)
          begin_window
          within = spent_ns <= watched_ns * @budget
          @resting = within ? 0 : @rest
          @rest = within ? REST : [@rest * 2, MOST].min
          return if within

          @times_open += 1
          spent_ns.fdiv(watched_ns)
        end

        def begin_window
          @spent_before = @spent_ns
          @watched_before = @watched_ns
        end
      end
    end
  end
end
