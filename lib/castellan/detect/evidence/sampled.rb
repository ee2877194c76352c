# frozen_string_literal: true

module Castellan
  module Detect
    class Evidence
      # Collects {Evidence} from a sample of a server's requests; reads are only reported during those.
      #
      #   sampled = Sampled.new(0.01)
      #   use = sampled.begin                  # => an EagerUse; nil if this request is not sampled
      #   …                                    # the request, in a recording with that observer
      #   sampled.finish(use, tally)           # => [Finding], the proven findings among its loads
      #
      # Thread-safe.
      class Sampled
        # @return [Float] the share of requests to sample
        attr_reader :share

        # @param share [Numeric, false, nil] from 0 to 1; false and nil mean 0
        # @param requests [Integer] see {Evidence#initialize}
        # @raise [ConfigurationError] for any other share
        def initialize(share, requests: REQUESTS)
          @share = Float(share || 0)
          raise ConfigurationError, "evidence: must be a share from 0 to 1, or false, got #{share}" unless @share.between?(0, 1)

          @evidence = Evidence.new(requests: requests, listen: false)
          @told = {}
          @lock = Mutex.new
        end

        # Begins to record reads of one request; call {#finish} after it.
        # @return [EagerUse, nil] nil if this request is not sampled
        def begin
          return if @share.zero? || (@share < 1 && rand >= @share)

          Instrument::EagerInstrument.subscribe
          EagerUse.new
        end

        # @param use [EagerUse]
        # @param tally [Tally] the tally of the same request
        # @return [Array<Finding>] see {Evidence#observe}
        def finish(use, tally)
          Instrument::EagerInstrument.unsubscribe
          @evidence.observe(use, Verdict.new(tally).repetitions)
        end

        # @param findings [Array<Finding>] findings of other requests; eager loads that they recommend are
        #   never reported as unused
        # @return [void]
        def leave_alone(findings)
          @evidence.observe([], findings)
        end

        # @param findings [Array<Finding>]
        # @return [Array<Finding>] those that were not passed to this method before
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
        # @return [Boolean] whether it is another kind of finding, or still holds
        def holds?(finding) = !finding.of_many_requests? || @evidence.holds?(finding)
      end
    end
  end
end
