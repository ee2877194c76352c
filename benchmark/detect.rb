# frozen_string_literal: true

require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

# Compares the cost of the detector with Bullet and Prosopite: per event, and for pages with and without
# repeated queries (and for the baseline of the users example, if it is installed).
#
#   rake bench:detect                 # writes benchmark/detect.md; about three minutes
#   BENCH_SHORT=1 rake bench:detect   # only checks that it works
#
# Measures in two ways, because the variation of wall time exceeds the cost: (1) the cost of each kind of
# event, 150 frames deep of which 40 belong to gems, times the events of the request, as a share of the
# request's time; (2) the same request with and without the detector in turns, as the median of the ratios per
# round (two pairs each, in both orders) with a 95 % interval (bootstrap). Contenders take turns, each in its
# own process. The contender "nobody" does nothing: if its interval does not contain 0, the run is invalid.
require "bundler"
require "etc"
require "json"
require "open3"
require_relative "support/apart"
require_relative "detect/contest"
require_relative "detect/events"
require_relative "detect/sample"

module Benchmarks
  module Detect
    class Run
      SHORT = ENV["BENCH_SHORT"] == "1"
      EVENTS = SHORT ? 2_000 : 100_000
      ROUNDS = SHORT ? 3 : 171
      GOALS = { ["Castellan, production, every request", "no repetition"] => 2.0,
                ["Castellan, production, every request", "N+1"] => 3.0,
                ["Castellan, production", "no repetition"] => 0.5, ["Castellan, production", "N+1"] => 0.5,
                ["Castellan, development", "no repetition"] => 3.0, ["Castellan, development", "N+1"] => 5.0 }.freeze
      EVENT_GOAL_US = 1.2
      PAGES = ["no repetition", "N+1"].freeze
      CONTESTS = { "Castellan" => [Contenders::NOBODY, *Contenders::CASTELLAN],
                   "Bullet" => ["Bullet"], "Prosopite" => ["Prosopite"] }.freeze

      def call
        @rows = {}
        @events = Apart.call { Events.new(EVENTS, turns: SHORT ? 1 : 25).measure }
        @prosopite = Apart.call { Events.new(EVENTS / 50, turns: SHORT ? 1 : 5).prosopite }
        @samples = samples
        report = [heading, event_table, page_table, users_table].compact.join("\n")
        puts report
        File.write(File.join(__dir__, "detect.md"), report) unless SHORT
        File.open(ENV.fetch("BENCH_JSON"), "a") { |file| file.puts(JSON.generate(@rows)) } if ENV["BENCH_JSON"]
      end

      private

      # @return [Hash{Array(String, String) => Sample}]
      def samples
        contests = CONTESTS.transform_values { |names| Contest.start(names) }
        rounds = Hash.new { |all, key| all[key] = [] }
        ROUNDS.times { |number| take_turns(contests, number) { |key, round| rounds[key] << round } }
        contests.each_value(&:stop)
        rounds.transform_values { |list| Sample.new(list) }
      end

      # Bullet makes a page several times slower, so it runs only in every fifth round.
      def take_turns(contests, number)
        contests.each do |contest, remote|
          next if contest == "Bullet" && !SHORT && number % 5 != 0

          CONTESTS.fetch(contest).product(PAGES).each { |name, page| yield [name, page], remote.round(name, page, number.odd?) }
        end
      end

      def heading
        versions = %w[activerecord bullet prosopite].map { |name| "#{name} #{Gem.loaded_specs[name].version}" }
        native = File.exist?(File.expand_path("../lib/castellan/castellan_ext.so", __dir__)) ? "in C" : "in Ruby"
        "# What the detector costs\n\nRuby #{RUBY_VERSION}, #{versions.join(", ")}, SQLite in memory, call sites and fingerprints " \
          "#{native}, #{Etc.nprocessors} cores. Written by `rake bench:detect`.\n"
      end

      def event_table
        @rows.update(event_us: @events.fetch(Events::STATEMENT).first.round(3), event_objects: @events.fetch(Events::STATEMENT).last)
        lines = [*@events, [Events::PROSOPITE, @prosopite]].map do |name, (us, objects)|
          goal = name == Events::STATEMENT ? verdict(us <= EVENT_GOAL_US && objects < 0.5, "≤ #{EVENT_GOAL_US} µs, 0 objects") : ""
          format("| %s | %.2f | %.1f | %s |", name, us, objects, goal)
        end
        "## One event, beyond what it costs without the detector\n\n| | µs | objects | goal |\n|---|---|---|---|\n#{lines.join("\n")}\n"
      end

      def verdict(reached, goal) = "#{goal}: #{reached ? "reached" : "**not reached**"}"

      def page_table
        lines = @samples.map { |(name, page), sample| page_row(name, page, sample) }
        "## A request\n\nms of the processor without → with it. Objects are not collected within a request. " \
          "\"nobody\" is the same request on both sides, switched as the others are: the error of the measurement. The cost of the " \
          "events is that of many in a row, whose code and data stay in the caches of the processor; between two statements of a " \
          "request the work of the request pushes them out, so each costs many times as much there, which the pairs show.\n\n" \
          "| who | page | mean | p95 | p99 | max | cost of the events | paired: median, 95 % interval | goal |\n" \
          "|#{"---|" * 9}\n#{lines.join("\n")}\n"
      end

      def page_row(name, page, sample)
        events = share_of_events(name, page, sample)
        interval = sample.interval
        @rows["#{name}, #{page}"] = { events_percent: events&.round(3), paired_percent: sample.share.round(3),
                                      interval: interval.map { |percent| percent.round(3) } }
        times = [sample.mean, sample.percentile(95), sample.percentile(99), sample.max].map { |pair| format("%.2f → %.2f", *pair) }
        cells = [name, page, *times, events && format("%.2f %%", events),
                 format("%+.2f %% (%+.2f to %+.2f)", sample.share, *interval), goal(name, page, sample.share, interval)]
        "| #{cells.join(" | ")} |"
      end

      # If the interval contains the goal, the result is undecided.
      def goal(name, page, share, interval)
        goal = GOALS[[name, page]] or return ""
        return "< #{goal} %: not shown" if interval.first < goal && goal < interval.last

        verdict(share < goal, "< #{goal} %")
      end

      def share_of_events(name, page, sample)
        return unless name.start_with?("Castellan")

        fixed = @events.fetch(name.include?("production") ? Events::PRODUCTION : Events::DEVELOPMENT).first
        kinds = { Events::STATEMENT => World::QUERIES, Events::LOAD => World::LOADS, Events::WALK => World::WALKS }
        us = fixed + kinds.sum { |kind, times| @events.fetch(kind).first * times.fetch(page) }
        us += (@events.fetch(Events::FIRST).first - @events.fetch(Events::STATEMENT).first) * World::TEXTS.fetch(page)
        us / sample.mean.first / 10
      end

      # The example is a separate application with its own bundle.
      def users_table
        directory = File.expand_path("../examples/users", __dir__)
        return unless Dir[File.join(directory, "db/*.sqlite3")].any?

        env = { "BUNDLE_GEMFILE" => File.join(directory, "Gemfile"), "RAILS_ENV" => "production", "PAIRS" => SHORT ? "2" : "30" }
        output, errors, status = Bundler.with_unbundled_env do
          Open3.capture3(env, RbConfig.ruby, "-rbundler/setup", File.join(__dir__, "detect/users.rb"), directory)
        end
        return "\nThe users example did not run: #{errors.lines.grep_v(/warn/i).first}" unless status.success?

        users_row(JSON.parse(output.lines.last))
      end

      def users_row(result)
        sample = Sample.new(result.fetch("pairs").map { |pair| [pair] })
        share = @events.fetch(Events::STATEMENT).first * result["queries"] / sample.mean.first / 10
        @rows.update(users_baseline_ms: sample.mean.first.round(1), users_queries: result["queries"], users_share_percent: share.round(2))
        "## The baseline of the users example\n\n" \
          "#{result["queries"]} queries, #{sample.mean.first.round} ms, #{result["findings"]} findings. Cost of the statements: " \
          "#{share.round(2)} %. #{format("Paired: %+.2f %% (%+.2f to %+.2f).", sample.share, *sample.interval)}\n"
      end
    end
  end
end

Benchmarks::Detect::Run.new.call
