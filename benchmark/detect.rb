# frozen_string_literal: true

# What watching costs: an event of ActiveRecord's, a page that repeats no query, a page that does, and the baseline of the
# users example where it is installed.
#
#   rake bench:detect                 # writes benchmark/detect.md
#   BENCH_SHORT=1 rake bench:detect   # only shows that it works
#
# Twice, because wall time scatters by more than the cost is: (1) the cost of an event, 150 frames deep of which 40 belong
# to gems, times the events of the request, as a share of the request's time; (2) the same request with and without the
# detector, taking turns, as the median of the pairs' ratios with a 95 % interval (bootstrap).
require "castellan/detect"
require "active_record"
require "bundler"
require "json"
require "open3"

module DetectBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  EVENTS = SHORT ? 2_000 : 100_000
  PAIRS = SHORT ? 3 : 400
  SQL = 'SELECT "employees".* FROM "employees" WHERE "employees"."user_id" = ? LIMIT ?'

  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:")
  end

  class User < Base
    has_one :employee, class_name: "DetectBenchmark::Employee"
    has_many :posts, class_name: "DetectBenchmark::Post"
  end

  class Employee < Base
    self.table_name = "employees"
  end

  class Post < Base
    self.table_name = "posts"
  end

  # Runs a block 110 frames of the application below the top.
  def self.deep(frames = 110, &block) = frames.zero? ? yield : deep(frames - 1, &block)

  # Sends events as ActiveRecord does, below 40 frames that belong to a gem.
  FOREIGN = <<~RUBY
    def self.foreign(frames, count) = frames.zero? ? events(count) : foreign(frames - 1, count)

    def self.events(count)
      instrumenter = ActiveSupport::Notifications.instrumenter
      binds = [0, 1]
      payload = { sql: SQL, name: "Employee Load", binds: [], type_casted_binds: binds, statement_name: nil, async: false,
                  connection: nil, transaction: nil, row_count: 1 }
      index = 0
      while index < count
        binds[0] = index
        instrumenter.instrument("sql.active_record", payload) { nil }
        index += 1
      end
    end
  RUBY
  module_eval(FOREIGN, "#{Gem.path.first}/gems/benchmark/events.rb", 1)

  class << self
    def run
      seed
      report = [heading, event_table, page_table, users_table].compact.join("\n")
      puts report
      File.write(File.join(__dir__, "detect.md"), report) unless SHORT
      File.open(ENV.fetch("BENCH_JSON"), "a") { |file| file.puts(JSON.generate(@rows)) } if ENV["BENCH_JSON"]
    end

    private

    def seed
      Base.connection.create_table(:users) { |table| table.string(:name) }
      Base.connection.create_table(:employees) { |table| table.integer(:user_id) }
      Base.connection.create_table(:posts) { |table| table.integer(:user_id) }
      User.insert_all(Array.new(100) { |number| { name: "user #{number}" } })
      Employee.insert_all(User.ids.map { |id| { user_id: id } })
      Post.insert_all(User.ids.flat_map { |id| Array.new(3) { { user_id: id } } })
      @rows = {}
    end

    def heading
      native = Castellan::CallSite.method(:current).owner == Castellan::NativeCallSite ? "C" : "Ruby"
      "# What the detector costs\n\nRuby #{RUBY_VERSION}, ActiveRecord #{ActiveRecord.version}, call sites in #{native}, " \
        "#{Etc.nprocessors} cores. Written by `rake bench:detect`.\n"
    rescue NameError
      "# What the detector costs\n\nRuby #{RUBY_VERSION}, ActiveRecord #{ActiveRecord.version}, call sites in Ruby.\n"
    end

    # @return [Array(Float, Float)] microseconds and objects of one event; the least of several runs
    def event
      Array.new(SHORT ? 1 : 5) do
        objects = GC.stat(:total_allocated_objects)
        started = Castellan::Clock.monotonic_ns
        deep { foreign(40, EVENTS) }
        [(Castellan::Clock.monotonic_ns - started) / EVENTS / 1e3, (GC.stat(:total_allocated_objects) - objects) / EVENTS.to_f]
      end.min
    end

    def event_table
      orm = event
      Castellan::Instrument.subscribe
      idle = event
      watched = Castellan::Recording.open(Castellan::Detect::Tally.new) { event }
      @cost_us = watched.first - orm.first
      @rows.update(event_us: @cost_us.round(3), event_objects: (watched.last - orm.last).round)
      rows = { "ActiveRecord's own instrumentation" => orm, "subscribed, nothing recorded: more" => minus(idle, orm),
               "watched: more" => minus(watched, orm) }
      "## One event of a statement whose text was seen before\n\n| | µs | objects |\n|---|---|---|\n" \
        "#{rows.map { |name, (us, objects)| format("| %s | %.2f | %.0f |\n", name, us, objects) }.join}"
    ensure
      Castellan::Instrument.unsubscribe
    end

    def minus(one, other) = one.zip(other).map { |left, right| left - right }

    def page_table
      pages = { "page without repetition, 3 queries, 500 records" => -> { User.preload(:employee, :posts).map { |user| user.posts.size } },
                "N+1, 101 queries" => -> { User.all.map { |user| user.employee&.id } } }
      "## A request\n\n| work | ms | queries | cost of the events | paired: median, 95 % interval | verdict |\n" \
        "|---|---|---|---|---|---|\n#{pages.map { |name, work| page(name, work) }.join}"
    end

    # Without the verdict, which is passed after the response is there.
    def page(name, work)
      counter = Castellan::Instrument::Counter.new
      Castellan::Instrument.record(counter, &work)
      Castellan::Instrument.subscribe
      pairs = deep { paired(-> { work.call }, -> { Castellan::Recording.open(Castellan::Detect::Tally.new) { work.call } }) }
      findings = Castellan::Detect.watch(&work).size
      ms = median(pairs.map(&:first)) / 1e6
      share = @cost_us * counter.queries / ms / 10
      format("| %s | %.2f | %d | %.2f %% | %s | %d findings |\n", name, ms, counter.queries, share, interval(pairs), findings)
    ensure
      Castellan::Instrument.unsubscribe
    end

    def paired(plain, watched)
      20.times { [plain.call, watched.call] }
      Array.new(PAIRS) do |index|
        GC.start if (index % 50).zero?
        index.even? ? [time(plain), time(watched)] : [time(watched), time(plain)].reverse
      end
    end

    def time(work)
      started = Castellan::Clock.monotonic_ns
      work.call
      Castellan::Clock.monotonic_ns - started
    end

    def interval(pairs)
      ratios = pairs.map { |plain, watched| (watched.to_f / plain - 1) * 100 }
      random = Random.new(1)
      medians = Array.new(500) { median(Array.new(ratios.size) { ratios[random.rand(ratios.size)] }) }.sort
      format("%+.2f %% (%+.2f to %+.2f)", median(ratios), medians[12], medians[487])
    end

    def median(values) = values.sort[values.size / 2]

    # The example is an application of its own: it is run in its own bundle.
    def users_table
      directory = File.expand_path("../examples/users", __dir__)
      return "" unless Dir[File.join(directory, "db/*.sqlite3")].any?

      env = { "BUNDLE_GEMFILE" => File.join(directory, "Gemfile"), "RAILS_ENV" => "production", "PAIRS" => SHORT ? "2" : "30" }
      output, errors, status = Bundler.with_unbundled_env do
        Open3.capture3(env, RbConfig.ruby, "-rbundler/setup", File.join(__dir__, "detect/users.rb"), directory)
      end
      return "\nThe users example did not run: #{errors.lines.grep_v(/warn/i).first}" unless status.success?

      users_row(JSON.parse(output.lines.last))
    end

    def users_row(result)
      pairs = result.fetch("pairs")
      ms = median(pairs.map(&:first)) / 1e6
      share = @cost_us * result["queries"] / ms / 10
      @rows.update(users_baseline_ms: ms.round(1), users_queries: result["queries"], users_share_percent: share.round(2))
      "## The baseline of the users example\n\n" \
        "#{result["queries"]} queries, #{ms.round} ms, #{result["findings"]} findings. Cost of the events: #{share.round(2)} %. " \
        "Paired: #{interval(pairs)}.\n"
    end
  end
end

DetectBenchmark.run
