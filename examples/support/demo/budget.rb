# frozen_string_literal: true

module Castellan
  module Demo
    # Divides the time of a demo among its load steps: each gets the requested seconds, or fewer on a slow machine.
    #
    #   budget = Budget.new(seconds: 5, steps: 23, elapsed: -> { progress.elapsed })
    #   budget.take   # => 5, seconds of load for the next step
    class Budget
      # Seconds for all steps: the whole demo should take at most three minutes.
      LIMIT = 170
      # Seconds of a step besides its load, with its share of the servers' boots.
      OVERHEAD = 1.0
      LEAST = 1.0
      private_constant :OVERHEAD, :LEAST

      # @param seconds [Numeric] wanted for each step
      # @param steps [Integer] how many there are
      # @param elapsed [#call] seconds since the demo began
      def initialize(seconds:, steps:, elapsed:)
        @seconds = seconds
        @steps = steps
        @elapsed = elapsed
      end

      # @return [Numeric] seconds for the next step
      def take
        share = (LIMIT - @elapsed.call) / [@steps, 1].max
        @steps -= 1
        (share - OVERHEAD).clamp([@seconds, LEAST].min, @seconds)
      end
    end
  end
end
