# frozen_string_literal: true

module Castellan
  module Profile
    # Runs the sampler or memory counter of a profile; only one runs at a time per process.
    #
    #   sampling = Sampling.take("memory", wait: 2.0)
    #   sampling.around { work }
    #   sampling.finish    # => { memory: {…} }
    #   sampling.notes     # => [], or sentences with the reason why nothing was sampled
    #
    # If the gem is missing or another profile runs for too long, the profile records SQL only and gets a
    # note.
    class Sampling
      TURN = Turn.new
      FEW = 20
      private_constant :TURN, :FEW

      # @return [Array<String>] sentences for {Result#notes}
      attr_reader :notes

      # @param depth [String] of {Depth::NAMES}
      # @param wait [Numeric] seconds to wait for another profile to end
      # @return [Sampling]
      def self.take(depth, wait:)
        new(depth, wait).tap(&:begin)
      end

      # @return [Class] the sampler for this Ruby version
      def self.sampler
        RUBY_VERSION >= "3.2" ? VernierDepth : StackprofDepth
      end

      def initialize(depth, wait)
        @depth = depth
        @wait = wait
        @notes = []
      end

      # @return [Boolean] whether it samples or counts now
      def active? = !@kind.nil?

      # Waits for {TURN} and starts.
      def begin
        return if @depth == "sql"

        missing = kind.missing
        return @notes << missing if missing
        return @notes << "it lies within another profile of memory or samples: SQL was recorded" if TURN.own?

        wait_for_turn && start
      end

      # @return what the block returns
      def around(&block) = @kind ? @kind.around(&block) : yield

      # Stops, and releases the turn.
      # @return [Hash] members for a {Result}
      def finish
        running = @kind or return {}

        @kind = nil
        took = running.stop
        say_few(running.taken) if running.fills == :flame
        { running.fills => took }
      rescue StandardError => error
        @notes << "the #{@depth} profile failed: #{error.class}"
        {}
      ensure
        TURN.give if running
      end

      private

      def say_few(number)
        @notes << "only #{number} samples were taken: their shares say little" if number < FEW
      end

      def kind = @depth == "memory" ? MemoryDepth : Sampling.sampler

      def wait_for_turn
        waited_ns = TURN.take(wait: @wait)
        if waited_ns.nil?
          @notes << "another profile of memory or samples ran for more than #{@wait} s: SQL was recorded; ask again"
        elsif waited_ns.positive?
          @notes << format("it waited %.0f ms for another profile of memory or samples to end", waited_ns / 1e6)
        end
        waited_ns
      end

      def start
        one = @depth == "memory" ? kind.new : kind.new(@depth)
        return @kind = one if one.start

        @notes << "something else of this process samples or counts memory already: SQL was recorded"
      rescue StandardError => error
        @notes << "the #{@depth} profile could not begin: #{error.class}"
      ensure
        TURN.give unless @kind # Timeout leaves by `throw`, past the rescue; the turn would never be released
      end
    end
  end
end
