# frozen_string_literal: true

require_relative "world"
require_relative "contenders"

module Benchmarks
  module Detect
    # Measures the cost of one event over many repetitions, 150 frames deep of which 40 belong to a gem.
    #
    #   Events.new(100_000).measure   # => { "a statement whose text was seen before" => [0.9, 0.0], … }: additional µs and objects
    #
    # Alternates the two works whose difference it measures in many short turns, because the speed of a
    # machine varies by half for seconds at a time, and uses the median of the differences.
    class Events
      SQL = 'SELECT "employees".* FROM "employees" WHERE "employees"."user_id" = ? LIMIT ?'
      STATEMENT = "a statement whose text was seen before"
      FIRST = "the first statement of a text within a request"
      WALK = "the walk through an association"
      LOAD = "records loaded"
      PRODUCTION = "a request in production, without its statements"
      DEVELOPMENT = "a request in development, without its statements"
      ORM = "ActiveRecord's own instrumentation of a statement"
      IDLE = "a statement while nothing is recorded"
      PROSOPITE = "Prosopite: a statement"

      # Stands for an association of ActiveRecord.
      class Walked
        attr_reader :reflection

        def initialize(reflection) = @reflection = reflection
        def walk = find_target

        private

        def find_target = nil
      end

      # The same, with the module that Castellan prepends.
      class Witnessed < Walked
        prepend Castellan::Instrument::ActiveRecordInstrument::Reads
      end

      # Stands for a model that instantiates records.
      class Made
        attr_reader :name

        def initialize(name) = @name = name
        def _load_from_sql(rows) = rows
      end

      # The same, with the module that Castellan prepends.
      class Told < Made
        prepend Castellan::Instrument::ActiveRecordInstrument::Records
      end

      FOREIGN = <<~RUBY
        def foreign(frames, &block) = frames.zero? ? yield : foreign(frames - 1, &block)
      RUBY
      module_eval(FOREIGN, "#{Gem.path.first}/gems/benchmark/events.rb", 1)

      # @param count [Integer] the number of events of each kind in all turns together
      def initialize(count, turns: 25)
        @count = count / turns
        @turns = turns
      end

      # @return [Hash{String => Array(Float, Float)}]
      def measure
        World.seed
        orm, idle, seen = in_turns(-> { once { statements(@count) } }, -> { subscribed { once { statements(@count) } } },
                                   -> { subscribed { watch { once { statements(@count) } } } })
        subscribed do
          { ORM => middle(orm), IDLE => beyond(idle, orm), STATEMENT => beyond(seen, orm), FIRST => first,
            WALK => beyond(*in_turns(-> { watch { once { walks(Witnessed) } } }, -> { once { walks(Walked) } })),
            LOAD => beyond(*in_turns(-> { watch { once { loads(Told) } } }, -> { once { loads(Made) } })),
            PRODUCTION => request(Contenders.production), DEVELOPMENT => request(Contenders.development) }
        end
      end

      # Must run in a process in which Castellan is not subscribed.
      def prosopite
        World.seed
        watch = Contenders.prosopite
        beyond(*in_turns(-> { watch.call(->(_env) { once { statements(@count) } }, {}) }, -> { once { statements(@count) } }))
      end

      private

      def subscribed
        Castellan::Instrument.subscribe
        yield
      ensure
        Castellan::Instrument.unsubscribe
      end

      def watch(&block) = Castellan::Recording.open(Castellan::Detect::Tally.new, &block)

      # @return [Array<Array<Array(Float, Float)>>] for each work, the results of {once} per turn
      def in_turns(*works)
        works.each(&:call) # warm up
        Array.new(@turns) { works.map(&:call) }.transpose
      end

      # @return [Array(Float, Float)] microseconds and objects of one event
      def once
        GC.start
        objects = GC.stat(:total_allocated_objects)
        started = World.cpu_ns
        World.deep { foreign(40) { yield } }
        ns = World.cpu_ns - started
        [ns / @count / 1e3, ((GC.stat(:total_allocated_objects) - objects) / @count.to_f).round(2)]
      end

      def beyond(one, other) = middle(minus(one, other))

      def minus(one, other) = one.zip(other).map { |pair| pair.transpose.map { |left, right| left - right } }

      def middle(turns) = turns.transpose.map { |figures| figures.sort[figures.size / 2] }

      def statements(count)
        instrumenter = ActiveSupport::Notifications.instrumenter
        binds = [0, 1]
        payload = { sql: SQL, name: "Employee Load", binds: [], type_casted_binds: binds, statement_name: nil, async: false,
                    connection: World::Base.connection, transaction: nil, row_count: 1 }
        index = 0
        while index < count
          binds[0] = index
          instrumenter.instrument("sql.active_record", payload) { nil }
          index += 1
        end
      end

      # Each statement in its own recording, minus the cost of the recording and of one statement.
      def first
        recorded, plain, nothing_recorded, nothing = in_turns(
          -> { once { each_request { watch { statements(1) } } } }, -> { once { each_request { statements(1) } } },
          -> { once { each_request { watch { nil } } } }, -> { once { each_request { nil } } }
        )
        beyond(minus(recorded, plain), minus(nothing_recorded, nothing))
      end

      def walks(association)
        walked = association.new(World::User.reflect_on_association(:employee))
        index = 0
        while index < @count
          walked.walk
          index += 1
        end
      end

      def loads(type)
        made = type.new("Benchmarks::Detect::World::User")
        rows = Array.new(100).freeze
        index = 0
        while index < @count
          made._load_from_sql(rows)
          index += 1
        end
      end

      def request(contender)
        response = [200, {}, []].freeze
        app = ->(_env) { response }
        env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" }
        beyond(*in_turns(-> { once { each_request { contender.call(app, env) } } }, -> { once { each_request { app.call(env) } } }))
      end

      def each_request
        index = 0
        while index < @count
          yield
          index += 1
        end
      end
    end
  end
end
