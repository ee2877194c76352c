# frozen_string_literal: true

module Castellan
  class Purge
    # Remembers which proxies have which notes, and deletes a note when all have it. Thread-safe.
    #
    # It is in memory: after a restart, proxies get once more what another one still lacks.
    class Sent
      # @param outbox [Outbox]
      # @param size [Integer] number of proxies
      def initialize(outbox, size)
        @outbox = outbox
        @size = size
        @senders = {} # id => those that have sent the note
        @lock = Mutex.new
      end

      # Reads under the lock, because an id that was deleted after the reading would stay in memory.
      # @param last [Integer] an id
      # @param sender [Sender]
      # @return [Array(Integer, Array<Array(Integer, String)>, Boolean)] the last id of the next batch, the ids and tags
      #   of those of its notes that the sender has not sent, and whether the table has more
      def read(last, sender)
        @lock.synchronize do
          notes = @outbox.read(last)
          @senders.clear if notes.empty? && last.zero?
          [notes.last&.first || last, notes.reject { |id, _| @senders[id]&.include?(sender) }, notes.size == Outbox::BATCH]
        end
      end

      # @param sender [Sender]
      # @param ids [Array<Integer>] of notes that it has sent
      def add(sender, ids)
        @lock.synchronize do
          sent = ids.to_h { |id| [id, [*@senders[id], sender].uniq] }
          done = sent.select { |_, senders| senders.size == @size }.keys
          @outbox.delete(done)
          @senders.merge!(sent)
          done.each { |id| @senders.delete(id) }
        end
      end
    end
  end
end
