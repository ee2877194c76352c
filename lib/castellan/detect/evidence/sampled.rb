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
          @lock = Mutex.new
        end

        # Starts to note reads in one request; {#finish} must be called after it.
        # @return [EagerUse, nil] nil where this request is not drawn
        def begin
          return if @share.zero? || (@share < 1 && rand >= @share)

          Instrument::EagerInstrument.subscribe
          EagerUse.new
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
      end
    end
  end
end
