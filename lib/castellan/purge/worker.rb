# frozen_string_literal: true

require_relative "sender"

module Castellan
  class Purge
    # Waits for notes in a background thread, and has one more thread for each proxy. See {Purge#start}.
    class Worker
      IDLE = 1 # seconds without a notification after which the table is read anyway
      LAST = 5 # seconds for requests on their way when it stops
      private_constant :IDLE, :LAST

      def initialize(outbox, proxies, again_after:, log:)
        @outbox = outbox
        @log = log
        sent = Sent.new(outbox, proxies.size)
        @senders = proxies.map { |proxy| Sender.new(proxy, sent, again_after: again_after, log: log) }
      end

      def start
        @threads = [method(:run), *@senders.map { |sender| sender.method(:run) }].map do |run|
          Thread.new { run.call }.tap { |thread| thread.name = "castellan purge" }
        end
      end

      def stop
        @stopped = true
        @senders.each(&:stop)
        deadline_ns = Clock.monotonic_ns + (LAST * 1_000_000_000)
        @threads&.each { |thread| thread.join([(deadline_ns - Clock.monotonic_ns) / 1e9, 0].max) || thread.kill }
      end

      # Sends the notes in this thread, to each proxy, also if another one fails.
      # @return [Integer] number of notes sent
      # @raise [Error] the last failure
      def send_noted
        failure = nil
        counts = @senders.map do |sender|
          sender.send_noted
        rescue Error => error
          failure = error
          0
        end
        failure ? raise(failure) : counts.max
      end

      private

      def run
        until @stopped
          begin
            @outbox.wait(IDLE) { wake }
            wake
            @failed = false
          rescue StandardError => error
            @log.call("castellan: the notes of changes cannot be read, and purges wait: #{error.message.lines.first&.chomp}") unless @failed
            @failed = true
            sleep(IDLE)
          end
        end
      end

      def wake = @senders.each(&:wake)
    end
  end
end
