# frozen_string_literal: true

module Castellan
  module Demo
    # Divides the time of a demo among its load steps: the requested seconds, or fewer on a slow machine.
    #
    #   budget = Budget.new(seconds: 5, steps: 23, elapsed: -> { progress.elapsed })
    #   budget.take   # => 5, seconds of load for the next step
    class Budget
      # Seconds for all steps, because the whole demo should take at most three minutes.
      LIMIT = 170
      # Seconds that a step takes besides its load, including its share of booting the servers.
      OVERHEAD = 1.0
      LEAST = 1.0
      private_constant :OVERHEAD, :LEAST

      # @param seconds [Numeric] the requested seconds of each step
      # @param steps [Integer] the number of steps
      # @param elapsed [#call] returns the seconds since the demo began
      def initialize(seconds:, steps:, elapsed:)
        @seconds = seconds
        @steps = steps
        @elapsed = elapsed
      end

      # @return [Numeric] the seconds of the next step
      def take
        share = (LIMIT - @elapsed.call) / [@steps, 1].max
        @steps -= 1
        (share - OVERHEAD).clamp([@seconds, LEAST].min, @seconds)
      end
    end
  end
end
