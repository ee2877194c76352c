# frozen_string_literal: true

module Castellan
  module Detect
    class Evidence
      # {Evidence} of some of the requests of a server. Reads of associations are told only while such a request is under way.
      #
      #   sampled = Sampled.new(0.01)
      #   use = sampled.begin                  # => an EagerUse; nil when this request is not looked at
      #   …                                    # the request, in a recording of that observer
      #   sampled.finish(use, findings)        # => [Finding], what is proven of that which it loaded
      #
      # May be asked by several threads.
      class Sampled
        # @return [Float] which share of its requests is looked at
        attr_reader :share

        # @param share [Numeric, false, nil] 0, false and nil: none
        # @param requests [Integer] see {Evidence#initialize}
        def initialize(share, requests: REQUESTS)
          @share = Float(share || 0)
          raise ConfigurationError, "evidence: must be a share from 0 to 1, or false, got #{share}" unless @share.between?(0, 1)

          @evidence = Evidence.new(requests: requests, listen: false)
          @told = {}
          @passing = passing
          @lock = Mutex.new
        end

        # Whoever begins must {finish}, because reads are told until then.
        # @param metered [Boolean] whether it must know what it costs
        # @return [EagerUse, nil]
        def begin(metered: false)
          return if @share.zero? || (@passing -= 1) >= 0

          @passing = passing
          Instrument::EagerInstrument.subscribe
          metered ? MeteredUse.new : EagerUse.new
        end

        # Lets requests pass that would not be looked at, so that they need not {begin}.
        # @param most [Integer]
        # @return [Integer] how many of the next ones; the one after them must begin
        def pass(most)
          return most if @share.zero?

          passed = @passing.clamp(0, most)
          @passing -= passed
          passed
        end

        # @param use [EagerUse]
        # @param tally [Tally] of the same request
        # @return [Array<Finding>]
        def finish(use, tally)
          Instrument::EagerInstrument.unsubscribe
          @evidence.observe(use, Verdict.new(tally).repetitions)
        end

        # @param findings [Array<Finding>] of requests that were not looked at: what they say to load is not loaded for nothing
        # @return [void]
        def leave_alone(findings)
          @evidence.observe([], findings)
        end

        # @param findings [Array<Finding>]
        # @return [Array<Finding>] those that were not handed to this method before
        def news(findings)
          @lock.synchronize do
            findings.select do |finding|
              key = [finding.kind, finding.location, finding.association]
              @told[key] = true if @told.size < MOST && !@told.key?(key)
            end
          end
        end

        # @return [Array<Finding>] see {Evidence#findings}
        def findings = @evidence.findings

        # @param finding [Finding]
        # @return [Boolean] whether it is of another kind, or is still true
        def holds?(finding) = !finding.of_many_requests? || @evidence.holds?(finding)

        TINY = 1e-9 # so small that its logarithm is itself
        MOST_PASSING = 1e18
        private_constant :TINY, :MOST_PASSING

        private

        # How many requests pass until the next: as many as if each had been drawn for by itself, but one number is drawn for all of them.
        # Threads that count at the same moment may count one request less, which changes no share.
        def passing
          return 0 unless @share.between?(Float::MIN, 1.0.prev_float)

          drawn = @share < TINY ? -@share : Math.log(1 - @share)
          (Math.log(1 - rand) / drawn).clamp(0, MOST_PASSING).floor
        end
      end
    end
  end
end
