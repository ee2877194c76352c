# frozen_string_literal: true

module Castellan
  module Versions
    # Counts the writes that PostgreSQL notifies of, on a connection and in a thread of its own.
    #
    #   listener = NotificationListener.new { { dbname: "blog" } }
    #   listener.generation(%w[posts users], Clock.monotonic_ns)   # => 17, another number after each write; nil: not listening
    #
    # Starts with the first call, in each process (a forked one starts its own). A connection that is lost is opened again
    # after a second, then after up to 30; meanwhile there is no generation.
    class NotificationListener
      CHANNEL = "castellan_versions"
      BEAT_SECONDS = 1
      SILENT_NS = 3_000_000_000
      LONGEST_PAUSE = 30
      private_constant :BEAT_SECONDS, :SILENT_NS, :LONGEST_PAUSE

      # @param log [#call, nil] called once when the connection is lost; default standard error
      # @yieldreturn [Hash] arguments of PG.connect
      def initialize(log: nil, &connect)
        @connect = connect
        @log = log || ->(line) { warn(line) }
        @lock = Mutex.new
        @writes = Hash.new(0)
        @all = 0
      end

      # @param tables [Array<String>] without a schema
      # @param now_ns [Integer] monotonic
      # @return [Integer, nil] nil while nobody listens, or the connection was silent
      def generation(tables, now_ns)
        return start unless @thread&.alive? # threads of a parent process are dead
        return unless @beat_ns && now_ns - @beat_ns < SILENT_NS

        tables.sum(@all) { |table| @writes.fetch(table, 0) }
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
          @pid = Process.pid
          @beat_ns = nil
          @thread = Thread.new { listen_always }
          @thread.name = "castellan versions"
          @thread.report_on_exception = false
        end
        nil
      end

      # The connection of a parent process must not be ended by the end of this one.
      def disown
        @connection&.socket_io&.reopen(IO::NULL) if @pid && @pid != Process.pid
        @connection = nil
      rescue PG::Error, IOError, SystemCallError
        @connection = nil
      end

      def listen_always
        pause = BEAT_SECONDS
        loop do
          listen { pause = BEAT_SECONDS }
        rescue StandardError => error
          lost = error.message.lines.first&.chomp
          @log.call("castellan: versions are read from the database, because nobody listens to it: #{lost}") if @beat_ns
          @beat_ns = nil
          sleep pause
          pause = [pause * 2, LONGEST_PAUSE].min
        end
      end

      # Notifications of the time before were lost, so all tables have another generation.
      def listen
        connection = @connection = PG.connect(connect_timeout: 5, **@connect.call.transform_keys(&:to_sym))
        connection.exec("LISTEN #{CHANNEL}")
        @all += 1
        @beat_ns = Clock.monotonic_ns
        yield
        loop do
          connection.wait_for_notify(BEAT_SECONDS) { |_channel, _process, table| count(table) } || connection.exec("SELECT 1").clear
          @beat_ns = Clock.monotonic_ns
        end
      ensure
        connection&.close unless connection.nil? || connection.finished?
      end

      # A table with partitions or of several schemas has names that are not known here, and so counts for all.
      def count(table)
        table.empty? ? @all += 1 : @writes[table] += 1
      end
    end
  end
end
