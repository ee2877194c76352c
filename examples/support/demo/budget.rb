# frozen_string_literal: true

module Castellan
  module Demo
    # Divides the time that a demo may take among its load steps: each gets what was asked for, or less on a machine that is slow.
    #
    #   budget = Budget.new(seconds: 5, steps: 23, elapsed: -> { progress.elapsed })
    #   budget.take   # => 5, seconds of load for the next step
    class Budget
      # For all steps, in seconds: the whole demo is to take three minutes at the most.
      LIMIT = 170
      # What a step takes besides its load, its share of the servers' boots included.
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
