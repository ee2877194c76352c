# frozen_string_literal: true

module Castellan
  module Profile
    # Runs the sampler or memory counter of a profile. Only one runs at a time in a process.
    #
    #   sampling = Sampling.begin("memory")
    #   sampling.around { work }
    #   sampling.finish    # => { memory: {…} }
    #   sampling.notes     # => [], or sentences with the reason why nothing was sampled
    #
    # If the gem is missing or another profile is running, the profile records SQL only and gets a note.
    class Sampling
      LOCK = Mutex.new
      FEW = 20
      private_constant :LOCK, :FEW
      @owner = nil

      class << self
        # @param depth [String] of {Depth::NAMES}
        # @return [Sampling]
        def begin(depth) = new(depth).tap(&:begin)

        # A Mutex would have to be released by the thread that took it, but a server may close the body in
        # another one. The process id frees it in a forked process.
        # @return [Boolean] whether no other profile of this process runs
        def claim(sampling) = LOCK.synchronize { @owner&.first != Process.pid && (@owner = [Process.pid, sampling]) } ? true : false

        # Lets the next profile run.
        def release(sampling) = LOCK.synchronize { @owner = nil if @owner&.last.equal?(sampling) }
      end

      # @return [Array<String>] sentences for {Result#notes}
      attr_reader :notes

      def initialize(depth)
        @depth = depth
        @notes = []
      end

      # @return [Boolean] whether it samples or counts now
      def active? = !@running.nil?

      # Starts, or adds a note.
      def begin
        return if @depth == "sql"

        note = kind.missing
        note ||= "another profile of memory or samples is running: SQL was recorded; repeat the request" unless Sampling.claim(self)
        note ? @notes << note : start
      end

      # @return what the block returns
      def around(&block) = @running ? @running.around(&block) : yield

      # Stops, and lets the next profile run.
      # @return [Hash] members for a {Result}
      def finish
        running = @running or return {}

        @running = nil
        result = { running.fills => running.stop }
        @notes << "only #{running.taken} samples were taken: their shares say little" if running.fills == :flame && running.taken < FEW
        result
      rescue StandardError => error
        @notes << "the #{@depth} profile failed: #{error.class}"
        {}
      ensure
        Sampling.release(self)
      end

      private

      def kind = @depth == "memory" ? MemoryDepth : StackprofDepth

      def start
        sampler = kind.new(@depth)
        return @running = sampler if sampler.start

        @notes << "something else of this process samples or counts memory already: SQL was recorded"
      rescue StandardError => error
        @notes << "the #{@depth} profile could not begin: #{error.class}"
      ensure
        Sampling.release(self) unless @running # also if a timeout left by `throw`
      end
    end
  end
end
