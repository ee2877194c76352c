# frozen_string_literal: true

require_relative "../clock"

module Castellan
  module Versions
    # Holds one connection to PostgreSQL beside ActiveRecord's pool, to read versions in threads that have none.
    #
    #   own = OwnConnection.new
    #   own.use(Post.connection_pool) { |raw| raw.exec("SELECT 1") }   # => the block's result; nil: use the pool
    #
    # Checking a connection out of the pool and in again costs a fifth of a hit (`rake bench:cache`). The pool
    # makes the connection, so that it has the settings of its own. One thread uses it at a time.
    class OwnConnection
      LONGEST_IDLE_NS = 60_000_000_000 # a firewall or the server may have closed it since
      PAUSE_NS = 60_000_000_000 # after it could not be made, such as too many connections
      private_constant :LONGEST_IDLE_NS, :PAUSE_NS

      def initialize
        @lock = Mutex.new
        @used_ns = @paused_until_ns = 0
      end

      # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
      # @yieldparam raw [PG::Connection] outside of a transaction
      # @return [Object, nil] nil as well if another thread uses it, or if it or the block failed
      def use(pool)
        locked = @lock.try_lock or return
        raw = connected(pool) or return
        result = yield raw
        whole = true
        result
      rescue ::PG::Error, ::ActiveRecord::ActiveRecordError
        nil
      ensure
        close if raw && !whole # such as by Timeout, which leaves a statement running
        @lock.unlock if locked
      end

      private

      def connected(pool)
        now_ns = Clock.monotonic_ns
        close unless @pool.equal?(pool) && @pid == Process.pid && now_ns - @used_ns < LONGEST_IDLE_NS
        @used_ns = now_ns
        @raw || connect(pool, now_ns)
      end

      def connect(pool, now_ns)
        return if now_ns < @paused_until_ns

        @paused_until_ns = now_ns + PAUSE_NS
        @pool = pool
        @pid = Process.pid
        @connection = pool.send(:new_connection)
        @raw = @connection.raw_connection
        @paused_until_ns = 0
        @raw
      end

      # In a forked process, the connection is that of the parent.
      def close
        connection = @connection
        @connection = @raw = nil
        @pid == Process.pid ? connection&.disconnect! : connection&.discard!
      rescue ::PG::Error, ::ActiveRecord::ActiveRecordError
        nil
      end
    end
  end
end
