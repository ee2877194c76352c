# frozen_string_literal: true

module Castellan
  module Versions
    # Counts PostgreSQL's notifications of writes, in a thread with a connection of its own.
    #
    #   listener = NotificationListener.new { { dbname: "blog" } }
    #   listener.generation(%w[posts users], Clock.monotonic_ns)   # => 17; changes with each write
    #
    # Starts at the first call in each process, also after a fork. Reopens a lost connection after a second,
    # then after up to 30; meanwhile the generation is nil.
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
      # @return [Integer, nil] nil while the listener is not connected or has been silent
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

      # Otherwise the exit of a forked process would close the connection of its parent.
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

      # Changes the generation of all tables, because earlier notifications may be lost.
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

      # The trigger sends an empty name for tables with partitions or parents, whose other names are unknown
      # here. The pg gem yields it as nil.
      def count(table)
        table.nil? ? @all += 1 : @writes[table] += 1
      end
    end
  end
end
