# frozen_string_literal: true

module Castellan
  module Profile
    # Runs the sampler or memory counter of a profile. A process runs only one at a time.
    #
    #   sampling = Sampling.begin("memory")
    #   sampling.around { work }
    #   sampling.finish    # => { memory: {…} }
    #   sampling.notes     # => [], or why nothing was sampled
    #
    # If the gem is missing or another profile is running, records SQL only and adds a note.
    class Sampling
      LOCK = Mutex.new
      FEW = 20
      private_constant :LOCK, :FEW
      @owner = nil

      class << self
        # @param depth [String] of {Depth::NAMES}
        # @return [Sampling]
        def begin(depth) = new(depth).tap(&:begin)

        # Not a Mutex, because the thread that locks it must unlock it, and a server may close the body in
        # another thread. With the process id, a forked process is not blocked by its parent.
        # @return [Boolean] false if another profile of this process is running
        def claim(sampling) = LOCK.synchronize { @owner&.first != Process.pid && (@owner = [Process.pid, sampling]) } ? true : false

        def release(sampling) = LOCK.synchronize { @owner = nil if @owner&.last.equal?(sampling) }
      end

      # @return [Array<String>] for {Result#notes}
      attr_reader :notes

      def initialize(depth)
        @depth = depth
        @notes = []
      end

      # Starts the sampler, or adds a note.
      def begin
        return if @depth == "sql"

        note = kind.missing
        note ||= "another profile of memory or samples is running: SQL was recorded; repeat the request" unless Sampling.claim(self)
        note ? @notes << note : start
      end

      # @return the result of the block
      def around(&block) = @running ? @running.around(&block) : yield

      # Stops the sampler, so that another profile can run.
      # @return [Hash] members for a {Result}
      def finish
        running = @running or return {}

        @running = nil
        result = { running.fills => running.stop }
        @notes << "only #{running.taken} samples were taken: their shares are not exact" if running.fills == :flame && running.taken < FEW
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
        Sampling.release(self) unless @running # also after a `throw`, e.g. of a timeout
      end
    end
  end
end
