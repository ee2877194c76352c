# frozen_string_literal: true

require_relative "sent"

module Castellan
  class Purge
    # Sends the digests of notes to one proxy, so that a proxy that fails or hangs delays no other.
    class Sender
      IDLE = 1 # seconds
      RETRY = [0.1, 0.5, 1, 2, 5].freeze # seconds after failures
      MOST_TAGS = 2_000 # in one purge; for more, whole tables are purged
      WHOLE_EVERY = 1_000_000_000 # nanoseconds
      LATE = 1_000 # ids
      LONGEST_RETRY = 60 # seconds, whatever a proxy asks for
      private_constant :IDLE, :RETRY, :MOST_TAGS, :WHOLE_EVERY, :LATE, :LONGEST_RETRY

      # @param proxy [#purge]
      # @param sent [Sent] shared with the senders of the other proxies
      def initialize(proxy, sent, again_after:, log:)
        @proxy = proxy
        @sent = sent
        @again_after = again_after
        @log = log
        @again = [] # [time, tags], oldest first
        @failures = 0
        @lock = Mutex.new
        @woken = ConditionVariable.new
        @stopping = ConditionVariable.new
      end

      # Sends notes until {#stop}.
      def run
        until @stopped
          begin
            step
            @failures = 0
            wait
          rescue StandardError => error
            failed(error)
          end
        end
      end

      # Announces new notes to {#run}.
      def wake
        @lock.synchronize do
          @noted = true
          @woken.signal
        end
      end

      # Ends {#run} after the current request.
      def stop
        @lock.synchronize do
          @stopped = @noted = true
          [@woken, @stopping].each(&:signal)
        end
      end

      # A batch that fails stays in the table and does not block later ones.
      # @return [Integer] number of notes sent
      # @raise [Error] the last failure
      def send_noted
        count = 0
        more = true
        @last = first
        while more
          @last, notes, more = @sent.read(@last, self)
          begin
            count += send_batch(notes)
          rescue Error => error
            failure = error
            break if error.retry_after
          end
        end
        failure ? raise(failure) : count
      end

      private

      def step
        send_noted
      ensure
        repeat
      end

      # While another proxy is down, the table keeps what this one has. So it reads the whole table once a second,
      # and else only the last ids, of which a slow transaction may commit a lower one later.
      def first
        now = Clock.monotonic_ns
        return [@last - LATE, 0].max if @whole_at && now - @whole_at < WHOLE_EVERY

        @whole_at = now
        0
      end

      def send_batch(notes)
        return 0 if notes.empty?

        tags = short(notes.flat_map { |_, text| text.split }.uniq)
        purge(tags)
        accepted(notes, tags)
      rescue Error => error
        whole = notes.select { |_, text| (text.split - error.accepted).empty? }
        accepted(whole, whole.flat_map { |_, text| text.split }.uniq) if whole.any?
        raise
      end

      def accepted(notes, tags)
        @sent.add(self, notes.map(&:first))
        @again << [Clock.monotonic_ns + (@again_after * 1_000_000_000), tags] if @again_after
        notes.size
      end

      def repeat
        due = @again.take_while { |time, _| time <= Clock.monotonic_ns }
        return if due.empty?

        purge(short(due.flat_map(&:last).uniq))
        @again = @again.drop(due.size)
      rescue Error => error
        @again = due.map { |time, tags| [time, tags - error.accepted] }.reject { |_, tags| tags.empty? } + @again.drop(due.size)
        raise
      end

      def purge(tags)
        digests = Tags.digests(tags)
        @proxy.purge(digests)
      rescue StandardError => error
        accepted, retry_after = [error.accepted, error.retry_after] if error.is_a?(Error)
        raise Error.new("#{@proxy.class.name}: #{error.message}", retry_after: retry_after,
                                                                  accepted: digests.zip(tags).to_h.values_at(*accepted))
      end

      def short(tags)
        return tags if tags.size <= MOST_TAGS

        tags.select { |tag| tag.end_with?("~", "*") }.map { |tag| "#{tag[0...-1]}*" }.uniq
      end

      def wait
        next_time = @again.first&.first
        seconds = next_time ? ((next_time - Clock.monotonic_ns) / 1e9).clamp(0.001, IDLE) : IDLE
        @lock.synchronize do
          @woken.wait(@lock, seconds) unless @noted
          @noted = false
        end
      end

      def failed(error)
        @log.call("castellan: a purge failed and is sent again: #{error.message.lines.first&.chomp}") if @failures.zero?
        wanted = error.retry_after if error.is_a?(Error)
        pause = wanted.to_i.clamp(RETRY[[@failures, RETRY.size - 1].min], LONGEST_RETRY)
        @failures += 1
        @lock.synchronize { @stopping.wait(@lock, pause) unless @stopped }
      end
    end
  end
end
