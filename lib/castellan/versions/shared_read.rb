# frozen_string_literal: true

require_relative "../clock"

module Castellan
  module Versions
    # Shares one statement among threads that read the same versions at the same time.
    #
    #   read = SharedRead.new
    #   read.call { connection.exec(SQL) }   # in eight threads at once: two or three statements
    #
    # A result is never older than the call: threads that call while a statement runs wait for the next one
    # and share its result. If it fails, its error is raised in the thread that sent it, and the others send
    # their own.
    #
    # Before its statement, a thread lets the others run that are ready, because they may need the same
    # versions. If that takes long, because they compute something, it does not do so for the next second.
    class SharedRead
      LONG_NS = 2_000_000
      PAUSE_NS = 1_000_000_000
      # One statement and the threads that share it; they wait until the queue is closed. After a fork, the
      # parent's owner is not alive.
      Round = Struct.new(:owner, :ended, :read, :value)
      private_constant :LONG_NS, :PAUSE_NS, :Round

      def initialize
        @mutex = Mutex.new
        @running = nil
        @next = nil
        @alone_until_ns = 0
      end

      # @yieldreturn [Object] frozen
      # @return [Object] what the block returned, here or in another thread
      def call
        return yield if @running&.owner == Thread.current # a nested call in the block

        own = before = nil
        joined = @mutex.synchronize do
          alive(@next) || begin
            before = alive(@running)
            @next = own = Round.new(Thread.current, Thread::Queue.new)
            nil
          end
        end
        joined&.ended&.pop
        return joined.value if joined&.read

        lead(own, before) if own
        value = yield
        read = true
        value
      ensure
        # An interrupt before the round is finished would block all other threads.
        Thread.handle_interrupt(Object => :never) { finish(own, read, value) } if own
      end

      private

      def alive(round) = (round if round&.owner&.alive?)

      def lead(round, before)
        before ? before.ended.pop : gather
        @mutex.synchronize do
          @running = round
          @next = nil
        end
      end

      def gather
        started_ns = Clock.monotonic_ns
        return if started_ns < @alone_until_ns

        Thread.pass
        ended_ns = Clock.monotonic_ns
        @alone_until_ns = ended_ns + PAUSE_NS if ended_ns - started_ns > LONG_NS
      end

      def finish(round, read, value)
        @mutex.synchronize do
          round.value = value
          round.read = read
          @next = nil if @next.equal?(round)
          @running = nil if @running.equal?(round)
        end
        round.ended.close
      end
    end
  end
end
