# frozen_string_literal: true

require_relative "../clock"
require_relative "../measurement"
require_relative "../recording"
require_relative "../instrument"
require_relative "../detect"
require_relative "../profile"

module Castellan
  module Doctor
    # Measures one request of an application, each run in transactions that are rolled back.
    #
    #   examination = Examination.new(application, request).call
    #   examination.measurement   # => Measurement: the median of the measured runs
    #   examination.findings      # => [Finding]
    #
    # Runs: one to warm up, one that is profiled for findings and tables, measured ones, and one that counts
    # memory. Objects are counted for the whole process, so the application must not have active background
    # threads.
    class Examination
      RUNS = 5
      # No further measured run starts after this total time.
      BUDGET_NS = 2_000_000_000
      # Memory of slower requests is not counted, because that takes several times as long.
      SLOWEST_WITH_MEMORY_NS = 5_000_000_000

      # Collects the distinct statements of a run.
      class Statements
        # @return [Array<String>]
        def all
          @all.keys
        end

        def initialize
          @all = {}
        end

        # (see Recording#query)
        def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, _binds)
          @all[sql] = true
        end

        # @return [self] observer for a thread that starts meanwhile
        def strand = self
      end

      # @return [Request]
      # @return [Measurement]
      # @return [Integer] number of measured runs behind the median
      # @return [Array<Finding>]
      # @return [Profile::Result] of one run
      # @return [Array<String>] tables that the request reads
      # @return [String] body of the response
      attr_reader :request, :measurement, :runs, :findings, :profile, :tables, :body

      # @param runs [Integer] maximal number of measured runs
      # @param memory [Boolean] whether to count memory, which takes several times as long as the request
      # @param progress [#step=, nil] receives the name of each step
      def initialize(application, request, runs: RUNS, memory: true, progress: nil)
        @progress = progress
        @application = application
        @request = request
        @most_runs = runs
        @memory = memory
      end

      # @return [self]
      # @raise [Error] if a response is not 2xx
      def call
        step "the first request"
        @body = respond.body
        step "watching for repeated queries"
        survey { watch }
        @measurement = median(measured_runs)
        self
      end

      # Sends the request once without measuring, for a response that is compared with another.
      # @return [self]
      # @raise [Error] if the response is not 2xx
      def check
        @body = respond.body
        self
      end

      # @return [Boolean] whether a Castellan document rendered the response
      def castellan? = @castellan

      private

      def step(text)
        @progress&.step = "#{request}: #{text}"
      end

      # Uses a profiler session, so that the doctor and the profiler's page report the same findings.
      def watch
        session = Profile::Session.new
        respond { |ask| session.record(&ask) }
        @profile = session.finish
        @findings = session.findings
      ensure
        session&.close
      end

      # Sets the tables that a run reads, and whether it renders a Castellan document.
      def survey(&run)
        statements = Statements.new
        @castellan = renders_document? { Instrument.record(statements, &run) }
        @tables = Databases.tables(statements.all)
      end

      def renders_document?
        rendered = false
        TracePoint.new(:call) { rendered = true }.enable(target: Document.instance_method(:initialize)) { yield }
        rendered
      end

      # @yieldparam ask [Proc] sends the request, without the transactions around it
      def respond
        Databases.rolled_back do
          ask = -> { wanted(Answer.to(@application, request.env)) }
          block_given? ? yield(ask) : ask.call
        end
      end

      def wanted(answer)
        reason = Refusal.of(answer, request)
        raise Error, reason if reason

        answer
      end

      def measured_runs
        runs = []
        spent_ns = 0
        while runs.size < @most_runs && (runs.empty? || spent_ns < BUDGET_NS)
          step "measured run #{runs.size + 1} of #{@most_runs} at the most"
          runs << measured_run
          spent_ns += runs.last[:duration_ns]
        end
        runs
      end

      # Measures the Rack call and reading the body, without the transactions.
      def measured_run
        counter = Instrument::Counter.new
        GC.start
        Databases.rolled_back do
          env = request.env
          Instrument.record(counter) { timed { Answer.to(@application, env) } }
        end.then { |run| { **run, **counted(counter, run) } }
      end

      # Statements may nest: Sequel's `each` yields rows while its statement runs.
      def counted(counter, run)
        { sql_ns: [counter.sql_ns, run[:duration_ns]].min, queries: counter.queries, cached_queries: counter.cached_queries }
      end

      def timed
        objects = GC.stat(:total_allocated_objects)
        started_ns = Clock.monotonic_ns
        answer = yield
        { duration_ns: Clock.monotonic_ns - started_ns, allocated_objects: GC.stat(:total_allocated_objects) - objects,
          response_bytes: wanted(answer).body.bytesize, status: answer.status }
      end

      def median(runs)
        @runs = runs.size
        run = runs.sort_by { |one| one[:duration_ns] }[(runs.size - 1) / 2]
        Measurement.new(**run, **memory(run[:duration_ns]))
      end

      def memory(duration_ns)
        return {} unless @memory && duration_ns < SLOWEST_WITH_MEMORY_NS

        step "counting memory"
        Memory.of { respond }
      end
    end
  end
end
