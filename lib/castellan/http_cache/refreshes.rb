# frozen_string_literal: true

require "stringio"

module Castellan
  class HTTPCache
    # Validates stale responses in background threads, one for each key (RFC 5861 §3).
    class Refreshes
      # Keys that belong to the connection of the client or to the end of its request.
      CONNECTION = %w[rack.hijack rack.hijack? rack.hijack_io rack.early_hints rack.response_finished rack.after_reply puma.socket
                      async.callback HTTP_RANGE HTTP_IF_RANGE HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE HTTP_IF_MATCH
                      HTTP_IF_UNMODIFIED_SINCE HTTP_CACHE_CONTROL HTTP_PRAGMA].freeze
      MOST = 4 # threads
      private_constant :CONNECTION, :MOST

      def initialize
        @running = {}
        @lock = Mutex.new
      end

      # @param key [String]
      # @param env [Hash] Rack environment, which is copied
      # @yieldparam env [Hash]
      # @yieldreturn [Array, nil] Rack response; its body is read and closed
      # @return [Thread, nil] nil if a thread for this key is running, or the limit of threads is reached
      def start(key, env)
        @lock.synchronize do
          @running.delete_if { |_, thread| !thread.alive? } # a fork leaves dead threads behind
          return if @running.key?(key) || @running.size >= MOST

          @running[key] = Thread.new(background(env)) { |copy| run(key, copy) { |environment| yield environment } }
        end
      end

      # Waits for the running threads, for tests and shutdowns.
      def wait
        @lock.synchronize { @running.values }.each(&:join)
      end

      private

      def run(key, env)
        _status, _headers, body = yield env
        body.each { |_chunk| nil } if body.is_a?(TeedBody)
        body.close if body.respond_to?(:close)
      rescue StandardError => error
        env["rack.errors"]&.puts("castellan: a stale response could not be refreshed: #{error.full_message(highlight: false)}")
      ensure
        @lock.synchronize { @running.delete(key) }
      end

      def background(env)
        copy = env.except(*CONNECTION)
        copy["REQUEST_METHOD"] = "GET" # a HEAD response could not replace the stored one
        copy["rack.input"] = StringIO.new.set_encoding(Encoding::BINARY)
        copy
      end
    end
  end
end
