# frozen_string_literal: true

module Castellan
  module LoadTest
    # Runs one load test: starts the clients and adds up their counts. An instance runs once.
    #
    #   run = Run.new("http://127.0.0.1:3000/posts", clients: 10, seconds: 5)
    #   trap("INT") { run.stop }
    #   run.call # => Summary of the requests until the stop
    class Run
      WATCH_SECONDS = 0.05
      MAX_CLIENTS = 1_000
      DEFAULT_SECONDS = 5
      private_constant :WATCH_SECONDS, :MAX_CLIENTS, :DEFAULT_SECONDS

      # @param url [String]
      # @param clients [Integer] number of concurrent clients, at most 1,000
      # @param repetitions [Integer, nil] requests per client
      # @param seconds [Numeric, nil] by default 5, unless `repetitions:` is given; requests in progress are
      #   completed
      # @param max_requests [Integer, nil] of all clients together; by default 10,000, or clients ×
      #   repetitions
      # @param headers [Hash{String => String}]
      # @param http_method [String] GET or HEAD
      # @param keep_alive [Boolean] whether to reuse connections
      # @param expect [#===, Array<#===>] statuses that count as success, e.g. [200..299, 304]
      # @param timeout [Numeric] seconds for connecting, and for each response
      # @param verify [Boolean] whether to verify TLS certificates
      # @param progress [#call, nil] called 20 times per second with elapsed seconds and requests
      # @raise [ConfigurationError] if an option is invalid
      def initialize(url, clients: 10, repetitions: nil, seconds: nil, max_requests: nil, headers: {}, http_method: "GET",
                     keep_alive: true, expect: 200..299, timeout: 30, verify: true, progress: nil)
        @request = PreparedRequest.new(url, headers: headers, http_method: http_method, keep_alive: keep_alive)
        @connection = { timeout: positive(:timeout, timeout, Numeric), verify: verify }
        @number_of_clients = number_of_clients(clients)
        @budget = budget(repetitions, seconds, max_requests)
        @expect = expect.is_a?(Array) ? expect : [expect]
        @progress = progress
      end

      # @return [Summary]
      def call
        @budget.start
        started = Clock.monotonic_ns
        clients = Array.new(@number_of_clients) { client }
        watch(clients.map { |client| thread(client) }) { report_progress(started, clients) }
        result(clients.map(&:counts), Clock.monotonic_ns - started)
      end

      # Ends the run at once. Any thread or signal handler may call it. Does not count requests in progress.
      def stop = @budget.stop

      private

      def positive(name, value, type)
        return value if value.is_a?(type) && value.positive?

        raise ConfigurationError, "#{name}: must be a #{"whole " if type == Integer}number above 0, got #{value.inspect}"
      end

      def number_of_clients(number)
        return number if positive(:clients, number, Integer) <= MAX_CLIENTS

        raise ConfigurationError, "clients: must be #{MAX_CLIENTS} or fewer, got #{number}: they share one process"
      end

      def budget(repetitions, seconds, max_requests)
        repetitions &&= positive(:repetitions, repetitions, Integer)
        seconds = seconds ? positive(:seconds, seconds, Numeric) : (DEFAULT_SECONDS unless repetitions)
        max_requests ||= repetitions ? repetitions * @number_of_clients : 10_000
        Budget.new(seconds: seconds, repetitions: repetitions, max_requests: positive(:max_requests, max_requests, Integer))
      end

      def client = Client.new(Connection.new(@request, **@connection), budget: @budget, expect: @expect)

      def thread(client)
        Thread.new { client.call }.tap { |thread| thread.report_on_exception = false }
      end

      def watch(threads)
        while (alive = threads.find(&:alive?))
          alive.join(WATCH_SECONDS)
          yield
          threads.each(&:kill) if @budget.stopped?
        end
        threads.each(&:value) # raises the exception of the thread, if any
      end

      def report_progress(started, clients)
        @progress&.call((Clock.monotonic_ns - started) / 1e9, clients.sum { |client| client.counts.attempts })
      end

      def result(all_counts, elapsed_ns)
        Summary.new(request: @request, clients: @number_of_clients, counts: all_counts.inject(Counts.new, &:merge),
                    elapsed_ns: elapsed_ns, interrupted: @budget.stopped?, given_up: @budget.given_up?)
      end
    end
  end
end
