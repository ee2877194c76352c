# frozen_string_literal: true

require_relative "../clock"
require_relative "../measurement"
require_relative "../recording"
require_relative "../instrument"
require_relative "../detect"
require_relative "../profile"

module Castellan
  module Doctor
    # Measures one request of an application: a thrown-away first request, one that is watched for repeated queries and the tables that
    # it reads, measured runs, and a run whose memory is counted. Every run is in transactions that are rolled back.
    #
    #   examination = Examination.new(application, request).call
    #   examination.measurement   # => Measurement: the median of the measured runs
    #   examination.findings      # => [Finding]
    #
    # Objects are counted for the whole process, so the application must not work in the background meanwhile.
    class Examination
      RUNS = 5
      # No further measured run begins once this much time was spent on them.
      BUDGET_NS = 2_000_000_000
      # The memory of a request that takes longer is not counted: that would take many times as long.
      SLOWEST_WITH_MEMORY_NS = 5_000_000_000

      # Keeps the distinct statements of a run, so that the tables they read can be named.
      class Statements
        # @return [Array<String>]
        def all
          @all.keys
        end

        def initialize
          @all = {}
        end

        # (see Recording#query)
        def query(sql, _name, _started_ns, _duration_ns, _cached, _rows)
          @all[sql] = true
        end

        # @return [Statements] who is told of a thread that is started meanwhile
        def strand = self
      end

      # @return [Request]
      # @return [Measurement]
      # @return [Integer] how many measured runs it is the median of
      # @return [Array<Finding>]
      # @return [Profile::Result] of one watched run
      # @return [Array<String>] the tables that were read
      # @return [String] the response's body
      attr_reader :request, :measurement, :runs, :findings, :profile, :tables, :body

      # @param runs [Integer] how many measured runs at the most
      # @param memory [Boolean] whether to count memory, which takes many times as long as the request
      # @param progress [#step=, nil] given the name of each step as it begins
      def initialize(application, request, runs: RUNS, memory: true, progress: nil)
        @progress = progress
        @application = application
        @request = request
        @most_runs = runs
        @memory = memory
      end

      # @return [self]
      # @raise [Error] when an answer is not 2xx
      def call
        step "the first request"
        @body = respond.body
        step "watching for repeated queries"
        survey { watch }
        @measurement = median(measured_runs)
        self
      end

      # Only asks, once, and measures nothing: for an answer that is compared with another.
      # @return [self]
      # @raise [Error] when the answer is not 2xx
      def check
        @body = respond.body
        self
      end

      # @return [Boolean] whether the answer was written by a Castellan resource
      def castellan? = @castellan

      private

      def step(text)
        @progress&.step = "#{request}: #{text}"
      end

      # One profile: what the doctor says is what the page would show.
      def watch
        session = Profile::Session.new
        respond { |ask| session.record(&ask) }
        @profile = session.finish
        @findings = session.findings
      ensure
        session&.close
      end

      # What a run reads, and whether it renders a document of Castellan's.
      def survey(&run)
        statements = Statements.new
        @castellan = renders_document? { Instrument.record(statements, &run) }
        @tables = Databases.tables(statements.all)
      end

      # Looks at Document only where the application has loaded it.
      def renders_document?
        return yield && false if Castellan.autoload?(:Document)

        rendered = false
        TracePoint.new(:call) { rendered = true }.enable(target: Document.instance_method(:initialize)) { yield }
        rendered
      end

      # @yieldparam ask [Proc] sends the request; the transactions around it are not part of it
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

      # Rack's work and the reading of the body count; the transaction around them does not.
      def measured_run
        counter = Instrument::Counter.new
        GC.start
        Databases.rolled_back do
          env = request.env
          Instrument.record(counter) { timed { Answer.to(@application, env) } }
        end.then { |run| { **run, **counted(counter, run) } }
      end

      # Statements may lie within each other: Sequel's `each` yields rows while its statement runs.
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
