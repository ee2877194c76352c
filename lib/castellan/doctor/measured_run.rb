# frozen_string_literal: true

module Castellan
  module Doctor
    # Runs work once and measures it, in a transaction of every database that is rolled back.
    #
    #   run = MeasuredRun.call { Answer.to(application, env) }
    #   run.measurement.queries   # => 1139
    #   run.outcome.bytes         # => "{\"data\":…"
    #
    # Counts the objects of the whole process.
    class MeasuredRun
      # Counts all statements and those with the given fingerprints, and records which call sites load
      # records.
      class Observer
        attr_reader :counter, :repeated, :loads

        def initialize(fingerprints)
          @fingerprints = fingerprints
          @counter = Instrument::Counter.new
          @repeated = 0
          @loads = []
          @texts = {}
        end

        # (see Recording#loaded)
        def loaded(model, _count, site)
          @loads |= [[model, CallSite.location(site)]]
        end

        # (see Recording#query)
        def query(sql, name, started_ns, duration_ns, cached, rows, binds)
          @counter.query(sql, name, started_ns, duration_ns, cached, rows, binds)
          return if cached || @fingerprints.empty?

          @repeated += 1 if @texts.fetch(sql) { @texts[sql] = @fingerprints.include?(Fingerprint.of(sql)) }
        end

        # @return [self] the observer of a thread that starts meanwhile
        def strand = self
      end
      private_constant :Observer

      # Reads the response within the measurement, because a body may send queries.
      # @param fingerprints [Array<String>] the statements to count in {#repeated}
      # @param injection [Trial::Injection, nil] applied until the response is read
      # @param databases [Array<Sandbox::Database>]
      # @param warm_up [Boolean] true skips the garbage collection before the run, because its figures are not
      #   compared
      # @yield the work; its result must be one that {Outcome.of} can read
      # @return [MeasuredRun]
      def self.call(fingerprints: [], injection: nil, databases: Sandbox.connected, warm_up: false, &work)
        observer = Observer.new(fingerprints)
        GC.start unless warm_up
        Sandbox.rolled_back(databases) do
          Instrument.record(observer) { injection ? injection.apply { timed(observer, &work) } : timed(observer, &work) }
        end
      end

      def self.timed(observer)
        objects = GC.stat(:total_allocated_objects)
        started_ns = Clock.monotonic_ns
        outcome = Outcome.of(yield)
        duration_ns = Clock.monotonic_ns - started_ns
        new(observer, outcome, duration_ns: duration_ns, allocated_objects: GC.stat(:total_allocated_objects) - objects)
      end
      private_class_method :timed

      # @return [Measurement]
      # @return [Outcome]
      # @return [Integer] the number of statements with the given fingerprints
      # @return [Array<Array(String, String)>] models, and the call sites that loaded them
      attr_reader :measurement, :outcome, :repeated, :loads

      # The sum of the statements may exceed the duration, because they can nest: Sequel's `each` yields rows
      # while its statement runs.
      def initialize(observer, outcome, duration_ns:, allocated_objects:)
        @outcome = outcome
        @repeated = observer.repeated
        @loads = observer.loads
        counter = observer.counter
        @measurement = Measurement.new(duration_ns: duration_ns, allocated_objects: allocated_objects,
                                       sql_ns: [counter.sql_ns, duration_ns].min, queries: counter.queries,
                                       cached_queries: counter.cached_queries, response_bytes: outcome.bytes&.bytesize,
                                       status: outcome.status)
        freeze
      end
    end
  end
end
