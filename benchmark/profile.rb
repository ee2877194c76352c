# frozen_string_literal: true

# Compares the cost of a profile with rack-mini-profiler, and checks its figures.
#
#   rake bench:profile                 # writes benchmark/profile.md
#   BENCH_PAIRS=200 rake bench:profile # more pairs of requests than 60, for a machine that runs other programs
#   BENCH_SHORT=1 rake bench:profile   # only checks that it works
#
# Calls a Rails application in this process, 150 frames deep, that sends 101 queries of which 100 repeat. Each
# way alternates with the plain application; the figure is the median of the ratios of the pairs, with a 95 %
# interval (bootstrap). A profiled request is timed until its body is read and until it is closed, because
# closing builds and stores the result, after a server has sent the response. Comparing the plain application
# with itself shows the error of the measurement. Times are CPU time of the thread, because nothing waits
# here.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__, gemfile: File.expand_path("profile/Gemfile", __dir__))

require "json"
require "open3"
require "castellan"
require_relative "support/interval"
require_relative "profile/works"
require "memory_profiler"

module ProfileBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  PAIRS = SHORT ? 5 : Integer(ENV.fetch("BENCH_PAIRS", "60"))
  CALLS = SHORT ? 5_000 : 500_000
  ON = { "HTTP_X_ADMIN" => "yes" }.freeze

  class << self
    def run
      @rows = {}
      @plain = Works.boot
      @depth = Works.depth(@plain)
      report = [heading, unauthorized, requests, correctness].join("\n")
      puts report
      File.write(File.join(__dir__, "profile.md"), report) unless SHORT
      File.open(ENV.fetch("BENCH_JSON"), "a") { |file| file.puts(JSON.generate(@rows)) } if ENV["BENCH_JSON"]
    end

    private

    def heading
      "# What a profile costs\n\nRuby #{RUBY_VERSION}, Rails #{Rails.version}, SQLite, #{Etc.nprocessors} cores. " \
        "Written by `rake bench:profile`.\n"
    end

    def profiled(app)
      Castellan::Profile::Middleware.new(app, authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }, environment: "production")
    end

    # Calls an application that does nothing, with and without the middleware in turns.
    def unauthorized
      app = ->(_env) {}
      ways = { "a block" => profiled(app), "a secret" => Castellan::Profile::Middleware.new(app, environment: nil, secret: "s" * 32) }
      env = Rack::MockRequest.env_for("/users?page=1", "HTTP_COOKIE" => "session=abc")
      lines = ways.map do |name, middleware|
        more_ns, objects = more(app, middleware, env)
        @rows.update("unauthorized_#{name.split.last}_ns": more_ns.round, "unauthorized_#{name.split.last}_objects": objects)
        format("| authorised by %s | %.2f | %.2f |\n", name, more_ns / 1e3, objects)
      end
      "## A request that is not authorised\n\n| | µs more | objects more |\n|---|---|---|\n#{lines.join}"
    end

    def more(app, middleware, env)
      plain, ours = Array.new(SHORT ? 2 : 9) { [each_ns(app, env), each_ns(middleware, env)] }.transpose.map { |times| Castellan::Figures.median(times) }
      objects = [app, middleware].map do |one|
        before = GC.stat(:total_allocated_objects)
        1_000.times { one.call(env) }
        (GC.stat(:total_allocated_objects) - before) / 1_000.0
      end
      [ours - plain, (objects.last - objects.first).round(2)]
    end

    def each_ns(app, env)
      times = CALLS / 10
      started = now
      times.times { app.call(env) }
      (now - started) / times.to_f
    end

    def requests
      castellan = profiled(@plain)
      check(castellan)
      same = pairs { |read| Works.request(@plain, &read) }
      ours = pairs { |read| Works.request(castellan, ON, &read) }
      queries = castellan.results.find(castellan.results.latest.first.id).totals[:queries]
      "## A request of #{queries} queries, #{@depth} frames deep, #{PAIRS} pairs of requests\n\n" \
        "| | plain, ms | until the body is read | with what follows |\n|---|---|---|---|\n" \
        "#{row("Unprofiled, beside itself", same)}#{row("Castellan, SQL", ours)}#{mini_profiler(queries)}"
    end

    # Checks that the response is the same and that the profile contains the queries.
    def check(castellan)
      plain, profiled = Works.request(@plain), Works.request(castellan, ON)
      abort "the profiled application answers something else" unless plain == profiled && plain.first == 200
    end

    # rack-mini-profiler builds and stores its result before the response.
    def mini_profiler(expected)
      output, errors, status = Open3.capture3(RbConfig.ruby, "-rbundler/setup", File.join(__dir__, "profile/mini_profiler.rb"), PAIRS.to_s)
      return "\nrack-mini-profiler did not run: #{errors.lines.grep(/Error|error/).first}" unless status.success?

      theirs = JSON.parse(output.lines.last)
      abort "rack-mini-profiler recorded #{theirs["queries"]} queries, not #{expected}" unless theirs["queries"] == expected
      row("rack-mini-profiler", theirs["pairs"].map { |plain, all| [plain, all, all] })
    end

    # Each counted request follows a request that is not counted and warms the caches.
    # @return [Array<Array(Integer, Integer, Integer)>] plain, until the body is read, until it is closed
    def pairs(&work)
      plain = -> { Array.new(2) { time { |_read| Works.request(@plain) } }.last.last }
      ours = -> { Array.new(2) { time(&work) }.last }
      10.times { [plain.call, ours.call] }
      GC.start
      Array.new(PAIRS) { |index| index.even? ? [plain.call, *ours.call] : ours.call.unshift(plain.call) }
    end

    def time
      read_ns = nil
      started = now
      yield(-> { read_ns = now - started })
      ended_ns = now - started
      [read_ns || ended_ns, ended_ns]
    end

    def row(name, pairs)
      plain_ns = Castellan::Figures.median(pairs.map(&:first))
      key = name[/\w+/].downcase
      read = pairs.map { |plain, until_read, _| until_read.to_f / plain }
      closed = pairs.map { |plain, _, until_closed| until_closed.to_f / plain }
      @rows.update("#{key}_plain_ms": (plain_ns / 1e6).round(2), "#{key}_percent": percent(read), "#{key}_closed_percent": percent(closed))
      format("| %s | %.1f | %s | %s |\n", name, plain_ns / 1e6, interval(read), interval(closed))
    end

    def percent(ratios) = ((Castellan::Figures.median(ratios) - 1) * 100).round(2)

    def interval(ratios)
      format("%+.1f %% (%+.1f to %+.1f)", percent(ratios), *Benchmarks::Interval.of(ratios).map { |ratio| (ratio - 1) * 100 })
    end

    def correctness
      "## Whether the figures are right\n\n| | expected | Castellan |\n|---|---|---|\n#{memory}#{objects}#{samples}"
    end

    # Counts the second of two blocks, because the first one loads code.
    def memory
      work = -> { Works::User.order(:id).map(&:as_json).to_json.bytesize }
      work.call
      theirs = MemoryProfiler.report(&work)
      Castellan::Profile.run(depth: :memory, &work)
      ours = Castellan::Profile.run(depth: :memory, &work).memory
      @rows.update(memory_objects: [theirs.total_allocated, ours[:total_allocated]],
                   memory_bytes: [theirs.total_allocated_memsize, ours[:total_allocated_bytes]])
      "| objects allocated, by memory_profiler | #{theirs.total_allocated} | #{ours[:total_allocated]} |\n" \
        "| bytes allocated, by memory_profiler | #{theirs.total_allocated_memsize} | #{ours[:total_allocated_bytes]} |\n"
    end

    def objects
      work = -> { 100_000.times { Object.new } }
      Castellan::Profile.run(&work)
      "| objects of a block | 100000 | #{Castellan::Profile.run(&work).objects[:count]} |\n"
    end

    def samples
      flame = Castellan::Profile.run(depth: :cpu) { hot(SHORT ? 20_000_000 : 200_000_000) }.flame
      line = method(:hot).source_location.last + 2
      frames = flame["shared"]["frames"]
      here, all = flame["profiles"].first.values_at("samples", "weights").transpose.partition do |stack, _|
        frames[stack.last]["file"].to_s.end_with?("benchmark/profile.rb") && frames[stack.last]["line"] == line
      end.then { |own, others| [own.sum(&:last), own.sum(&:last) + others.sum(&:last)] }
      @rows.update(hot_line_percent: (here * 100.0 / all).round(1))
      format("| CPU samples of a hot loop on its line | 100 %% | %.1f %% |\n", here * 100.0 / all)
    end

    def hot(times)
      number = 0
      number += 1 while number < times
      number
    end

    def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end
end

ProfileBenchmark.run
