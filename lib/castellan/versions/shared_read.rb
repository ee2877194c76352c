# frozen_string_literal: true

require_relative "../clock"
require_relative "../uninterrupted"

module Castellan
  module Versions
    # Shares one statement among threads that read the same versions at the same time.
    #
    #   read = SharedRead.new
    #   read.call { connection.exec(SQL) }   # in eight threads at once: two or three statements
    #
    # A result is never older than the call: threads that call while a statement runs wait for the next one
    # and share its result. If it fails, its error is raised in the thread that sent it, and the others send
    # their own. So do threads that have waited for a second, because a connection may hang (its server is gone, or
    # a firewall drops its packets), and only its own thread may wait for that.
    #
    # Before its statement, a thread lets the others run that are ready, because they may need the same
    # versions. If that takes long, because they compute something, it does not do so for the next second.
    class SharedRead
      LONG_NS = 2_000_000
      PAUSE_NS = 1_000_000_000
      LONGEST_WAIT = 1 # seconds
      TIMED = RUBY_VERSION >= "3.2" # Queue#pop has a timeout
      # Instead of a Queue, where a Queue takes no timeout (Ruby 3.1).
      class Ended
        def initialize
          @lock = Mutex.new
          @closed = ConditionVariable.new
        end

        def close
          Uninterrupted.call do
            @lock.synchronize { @over = true }
            @closed.broadcast
          end
        end

        def pop(timeout:)
          Uninterrupted.call { @lock.synchronize { @over || @closed.wait(@lock, timeout) } }
        end
      end

      # One statement and the threads that share it; they wait until `ended` is closed. After a fork, the
      # parent's owner is not alive.
      Round = Struct.new(:owner, :ended, :read, :value)
      private_constant :LONG_NS, :PAUSE_NS, :LONGEST_WAIT, :TIMED, :Ended, :Round

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
        joined = synchronize do
          alive(@next) || begin
            before = alive(@running)
            @next = own = Round.new(Thread.current, TIMED ? Thread::Queue.new : Ended.new)
            nil
          end
        end
        await(joined) if joined
        return joined.value if joined&.read

        lead(own, before) if own
        value = yield
        read = true
        value
      ensure
        finish(own, read, value) if own
      end

      private

      # Without interrupts: Ruby 3.1 wakes no other thread when one is interrupted that waits for a mutex, and a
      # round that is not finished would block all other threads.
      def synchronize(&)
        Uninterrupted.call { @mutex.synchronize(&) }
      end

      def alive(round) = (round if round&.owner&.alive?)

      # Waits until the round has ended, but not for long.
      def await(round) = round.ended.pop(timeout: LONGEST_WAIT)

      def lead(round, before)
        before ? await(before) : gather
        synchronize do
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
        synchronize do
          round.value = value
          round.read = read
          @next = nil if @next.equal?(round)
          @running = nil if @running.equal?(round)
          round.ended.close
        end
      end
    end
  end
end
