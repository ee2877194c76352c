# frozen_string_literal: true

module Castellan
  class Purge
    # Sends the digests of notes to the proxies in a background thread. See {Purge#start}.
    class Worker
      IDLE = 1 # seconds without a notification after which the table is read anyway
      RETRY = [0.1, 0.5, 1, 2, 5].freeze # seconds after failures
      MOST_TAGS = 2_000 # in one purge; for more, whole tables are purged
      private_constant :IDLE, :RETRY, :MOST_TAGS

      def initialize(outbox, proxies, again_after:, log:)
        @outbox = outbox
        @proxies = proxies
        @again_after = again_after
        @log = log
        @again = [] # [time, tags], oldest first
        @failures = 0
      end

      def start
        @thread = Thread.new { run }.tap { |thread| thread.name = "castellan purge" }
      end

      def stop
        @stopped = true
        @thread&.join(5) || @thread&.kill
      end

      # A batch that fails stays in the table and does not block later ones.
      # @return [Integer] number of notes sent
      # @raise [Error] the last failure
      def send_noted
        sent = last = 0
        failure = nil
        until (notes = @outbox.read(last)).empty?
          last = notes.last.first
          begin
            send_batch(notes)
            sent += notes.size
          rescue Error => error
            failure = error
          end
        end
        failure ? raise(failure) : sent
      end

      private

      def send_batch(notes)
        tags = short(notes.flat_map { |_, text| text.split }.uniq)
        send_to_all(tags)
        @outbox.delete(notes.map(&:first))
        @again << [Clock.monotonic_ns + (@again_after * 1_000_000_000), tags] if @again_after
      end

      def run
        until @stopped
          begin
            step
          rescue StandardError => error
            failed(error)
          end
        end
      end

      def step
        sent = send_noted
        repeat
        @failures = 0
        @outbox.wait(pause) { send_noted } if sent.zero?
      end

      def pause
        next_time = @again.first&.first
        next_time ? [(next_time - Clock.monotonic_ns) / 1e9, 0.001].max.clamp(0.001, IDLE) : IDLE
      end

      def repeat
        due = @again.take_while { |time, _| time <= Clock.monotonic_ns }
        return if due.empty?

        send_to_all(short(due.flat_map(&:last).uniq))
        @again = @again.drop(due.size)
      end

      # Tries each proxy, so that one that is down does not block the others.
      def send_to_all(tags)
        digests = Tags.digests(tags)
        errors = @proxies.filter_map do |proxy|
          proxy.purge(digests)
          nil
        rescue StandardError => error
          "#{proxy.class.name}: #{error.message}"
        end
        raise Error, errors.join("; ") if errors.any?
      end

      def short(tags)
        return tags if tags.size <= MOST_TAGS

        tags.select { |tag| tag.end_with?("~", "*") }.map { |tag| "#{tag[0...-1]}*" }.uniq
      end

      def failed(error)
        @log.call("castellan: a purge failed and is sent again: #{error.message}") if @failures.zero?
        pause = RETRY[[@failures, RETRY.size - 1].min]
        @failures += 1
        sleep(pause)
      end
    end
  end
end
