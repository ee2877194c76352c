# frozen_string_literal: true

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
    class SharedRead
      # One statement and the threads that share it. After a fork, the parent's owner is not alive.
      Round = Struct.new(:owner, :ended, :read, :value)
      private_constant :Round

      def initialize
        @mutex = Mutex.new
        @free = ConditionVariable.new
        @running = nil
        @next = nil
      end

      # @yieldreturn [Object] frozen
      # @return [Object] what the block returned, here or in another thread
      def call
        return yield if @running&.owner == Thread.current # a nested call in the block

        own = nil
        joined = @mutex.synchronize { alive(@next) ? wait(@next) : lead(own = Round.new(Thread.current)) }
        return joined.value if joined&.read

        value = yield
        read = true
        value
      ensure
        # An interrupt before the round is finished would block all other threads.
        Thread.handle_interrupt(Object => :never) { finish(own, read, value) } if own
      end

      private

      def alive(round) = (round if round&.owner&.alive?)

      def wait(round)
        round.ended ||= ConditionVariable.new
        round.ended.wait(@mutex) while round.read.nil?
        round
      end

      # @return [nil]
      def lead(round)
        @next = round
        @free.wait(@mutex) while alive(@running)
        @running = round
        @next = nil
      end

      def finish(round, read, value)
        @mutex.synchronize do
          round.value = value
          round.read = read || false
          round.ended&.broadcast
          @next = nil if @next.equal?(round)
          next unless @running.equal?(round)

          @running = nil
          @free.signal
        end
      end
    end
  end
end
