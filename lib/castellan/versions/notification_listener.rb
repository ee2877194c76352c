# frozen_string_literal: true

require "securerandom"

module Castellan
  module Versions
    # Counts PostgreSQL's notifications of writes, in a thread with a connection of its own.
    #
    #   listener = NotificationListener.new { { dbname: "blog" } }
    #   listener.generation(%w[posts users], Clock.monotonic_ns)   # => 17; changes with each write
    #
    # Starts at the first call in each process, also after a fork. Reopens a lost connection after a second,
    # then after up to 30; meanwhile the generation is nil. It is also nil behind a connection pooler that
    # delivers no notifications, such as PgBouncer in transaction mode.
    class NotificationListener
      CHANNEL = "castellan_versions"
      PROBE = "castellan_probe"
      BEAT_SECONDS = 1
      SILENT_SECONDS = 3
      SILENT_NS = SILENT_SECONDS * 1_000_000_000
      PROBE_NS = 1_000_000_000
      LONGEST_PAUSE = 30
      # Raised behind a pooler that delivers no notifications.
      class NoNotifications < StandardError; end
      # Raised if the server does not answer.
      class Silent < StandardError; end
      private_constant :PROBE, :PROBE_NS, :BEAT_SECONDS, :SILENT_SECONDS, :SILENT_NS, :LONGEST_PAUSE, :NoNotifications, :Silent

      # @param log [#call, nil] called once when the connection is lost or cannot be opened; default standard error
      # @yieldreturn [Hash] arguments of PG.connect
      def initialize(log: nil, &connect)
        @connect = connect
        @log = log || ->(line) { warn(line) }
        @lock = Mutex.new
        @writes = {} # only of tables whose generation was read, because any client can notify of any name
        @all = @total = 0
      end

      # @param tables [Array<String>] without a schema
      # @param now_ns [Integer] monotonic
      # @return [Integer, nil] nil while the listener is not connected or has been silent
      def generation(tables, now_ns)
        total(now_ns) && tables.sum(@all) { |table| @writes[table] || know(table) }
      end

      # Costs less than {#generation}. While it stays the same, so does a generation that was read after it.
      # @param now_ns [Integer] monotonic
      # @return [Integer, nil] changes with each write of a table that a generation was read of; nil as {#generation}
      def total(now_ns)
        return start unless @thread&.alive? # threads of a parent process are dead

        @total if @beat_ns && now_ns - @beat_ns < SILENT_NS
      end

      # Ends the thread and its connection.
      def close
        @lock.synchronize do
          @thread&.kill&.join if @pid == Process.pid
          @thread = @beat_ns = nil
          @closed = true
        end
        nil
      end

      private

      # @return [nil]
      def start
        @lock.synchronize do
          next if @closed || (@pid == Process.pid && @thread&.alive?)

          disown
          @in_forks ||= in_forks { disown } # also in one that reads no version
          @pid = Process.pid
          @beat_ns = nil
          @thread = Thread.new { listen_always }
          @thread.name = "castellan versions"
          @thread.report_on_exception = false
        end
        nil
      end

      # Without ActiveSupport, when a fork exits.
      def in_forks(&block)
        defined?(::ActiveSupport::ForkTracker) ? ::ActiveSupport::ForkTracker.after_fork(&block) : at_exit(&block)
      end

      # Otherwise the exit of a forked process would close the connection of its parent. If the parent was killed, its
      # session would stay and read no notification, until PostgreSQL has no room for more and commits fail.
      def disown
        @connection&.socket_io&.reopen(IO::NULL) if @pid && @pid != Process.pid
        @connection = nil
      rescue PG::Error, IOError, SystemCallError
        @connection = nil
      end

      def listen_always
        pause = BEAT_SECONDS
        logged = []
        loop do
          listen { pause = BEAT_SECONDS }
        rescue StandardError => error
          note(error, logged)
          @beat_ns = nil
          sleep pause
          pause = [pause * 2, LONGEST_PAUSE].min
        end
      end

      # @param logged [Array<Class>] the errors that were logged: one line for each, and for each lost connection
      def note(error, logged)
        known = logged.include?(error.class)
        return if known && @beat_ns.nil?

        logged << error.class unless known
        reason = error.message.lines.first&.chomp
        @log.call("castellan: versions are read from the database, because no listener is connected to it: #{reason}")
      end

      # Changes the generation of all tables, because earlier notifications may be lost.
      def listen
        connection = @connection = connect
        check_delivery(connection) if pooled?(connection)
        connection.exec("LISTEN #{CHANNEL}")
        count(nil)
        @beat_ns = Clock.monotonic_ns
        yield
        loop do
          connection.wait_for_notify(BEAT_SECONDS) { |_channel, _process, table| count(table) } || answer(connection)
          @beat_ns = Clock.monotonic_ns
        end
      ensure
        connection&.close unless connection.nil? || connection.finished?
      end

      # A server that is gone, or a firewall, may close no connection: the system would notice after 15 minutes.
      # @raise [Silent] if the server does not answer
      def answer(connection)
        connection.send_query("SELECT 1")
        raise Silent, "the server does not answer" unless connection.block(SILENT_SECONDS)

        connection.get_last_result&.clear
      end

      def connect = PG.connect(connect_timeout: 5, **@connect.call.transform_keys(&:to_sym))

      # A pooler names a server process of its own.
      def pooled?(connection)
        connection.exec("SELECT pg_backend_pid()").getvalue(0, 0).to_i != connection.backend_pid
      end

      # Sends itself a notification. Another connection sends it, because a pooler in transaction mode delivers those
      # that arrive during a statement.
      # @raise [NoNotifications] if it does not arrive
      def check_delivery(connection)
        word = SecureRandom.hex(8)
        connection.exec("LISTEN #{PROBE}")
        sender = connect
        sender.exec("NOTIFY #{PROBE}, '#{word}'")
        until_ns = Clock.monotonic_ns + PROBE_NS
        received = nil
        while received != word && (left_ns = until_ns - Clock.monotonic_ns).positive?
          connection.wait_for_notify(left_ns / 1e9) { |_channel, _process, payload| received = payload }
        end
        return connection.exec("UNLISTEN #{PROBE}") if received == word

        raise NoNotifications, "a pooler in transaction mode delivers no notifications: pass connect: of the database itself"
      ensure
        sender&.close
      end

      # The trigger sends an empty name for tables with partitions or parents, whose other names are unknown
      # here. The pg gem yields it as nil. The total changes last, so that it never stands for an older generation.
      def count(table)
        if table.nil? then @all += 1
        elsif @writes.key?(table) then @writes[table] += 1
        else return
        end
        @total += 1
      end

      # Locks, so that a table that another thread has just added keeps its writes.
      def know(table)
        @lock.synchronize { @writes[table] ||= 0 }
      end
    end
  end
end
