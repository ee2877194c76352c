# frozen_string_literal: true

require_relative "../clock"

module Castellan
  module Versions
    # Holds one connection to PostgreSQL beside ActiveRecord's pool, to read versions in threads that have none.
    #
    #   own = OwnConnection.new
    #   own.use(Post.connection_pool) { |raw| raw.exec("SELECT 1") }   # => the block's result; nil: use the pool
    #
    # Checking a connection out of the pool and in again takes longer than such a statement. The pool makes the
    # connection, so that it has the settings of its own; if the application changes connections when they are
    # checked out, it is not used. One thread uses it at a time; after a minute, another one is made.
    class OwnConnection
      LONGEST_NS = 60_000_000_000 # until another one is made, such as after a failover
      PAUSE_NS = 60_000_000_000 # after none could be made, such as with too many connections
      private_constant :LONGEST_NS, :PAUSE_NS

      def initialize
        @lock = Mutex.new
        @made_ns = @paused_until_ns = 0
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
        whole = raw&.transaction_status == ::PG::PQTRANS_IDLE # only the statement failed
        nil
      ensure
        release(locked) { close unless raw.nil? || whole } # such as by Timeout, which leaves a statement running
      end

      private

      def release(locked)
        yield
      ensure
        @lock.unlock if locked
      end

      def connected(pool)
        now_ns = Clock.monotonic_ns
        close unless @pool.equal?(pool) && now_ns - @made_ns < LONGEST_NS
        @raw || connect(pool, now_ns)
      end

      def connect(pool, now_ns)
        return if now_ns < @paused_until_ns && @pool.equal?(pool)

        @pool = pool
        @paused_until_ns = now_ns + PAUSE_NS
        @fork ||= ::ActiveSupport::ForkTracker.after_fork { discard }
        connection = pool.send(:new_connection)
        return if changed?(connection)

        @raw = connection.raw_connection # connects
        @connection = connection
        @made_ns = now_ns
        @paused_until_ns = 0
        @raw
      end

      # Such as `SET search_path`, which the data would then be read with.
      def changed?(connection)
        connection.class._checkout_callbacks.any? do |callback|
          !callback.filter.is_a?(Symbol) || !connection.method(callback.filter).owner.name.to_s.start_with?("ActiveRecord::")
        end
      end

      def close
        connection = @connection
        @connection = @raw = nil
        connection&.disconnect!
      rescue ::PG::Error, ::ActiveRecord::ActiveRecordError
        nil
      end

      # In a forked process, the connection is that of the parent.
      def discard
        @connection&.discard!
        @connection = @raw = nil
      end
    end
  end
end
