# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Runs and measures the work once, in a transaction of every database that is rolled back.
      #
      #   run = Run.of(findings) { application.call(env) }
      #   run.measurement.queries   # => 1139
      #   run.asked                 # => 162 statements of the findings
      #   run.loads                 # => [["User", "app/controllers/users_controller.rb:9"]]
      #
      # Objects are counted for the whole process.
      class Run
        # Counts all statements and those of the findings, and collects the call sites that load records.
        class Statements
          attr_reader :counter, :asked, :loads

          def initialize(fingerprints)
            @fingerprints = fingerprints
            @counter = Instrument::Counter.new
            @asked = 0
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
            @asked += 1 if !cached && @texts.fetch(sql) { @texts[sql] = @fingerprints.include?(Fingerprint.of(sql)) }
          end

          # @return [self] observer for a thread that starts meanwhile
          def strand = self
        end
        private_constant :Statements

        # @param findings [Array<Finding>]
        # @param injection [Injection, nil] applied until the response is read
        # @yield the work
        # @return [Run]
        def self.of(findings, injection = nil, &work)
          statements = Statements.new(findings.map(&:fingerprint).uniq)
          GC.start
          measured = Databases.rolled_back(Databases.reachable) do
            Instrument.record(statements) { injection ? injection.apply { timed(&work) } : timed(&work) }
          end
          new(statements, measured)
        end

        # Reads the response inside the measurement, because a body may send queries.
        def self.timed
          objects = GC.stat(:total_allocated_objects)
          started_ns = Clock.monotonic_ns
          outcome = Outcome.of(yield)
          { duration_ns: Clock.monotonic_ns - started_ns, allocated_objects: GC.stat(:total_allocated_objects) - objects, outcome: outcome }
        end
        private_class_method :timed

        attr_reader :measurement, :outcome, :asked, :loads

        def initialize(statements, measured)
          @outcome = measured[:outcome]
          @asked = statements.asked
          @loads = statements.loads
          counter = statements.counter
          @measurement = Measurement.new(duration_ns: measured[:duration_ns], allocated_objects: measured[:allocated_objects],
                                         sql_ns: [counter.sql_ns, measured[:duration_ns]].min, queries: counter.queries,
                                         cached_queries: counter.cached_queries, response_bytes: @outcome.bytes&.bytesize,
                                         status: @outcome.status)
          freeze
        end
      end
    end
  end
end
