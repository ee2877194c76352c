# frozen_string_literal: true

# Measures the cost of `require "castellan"` compared with `ruby -e 0`, and lists what it loads.
#
#   rake bench:boot                 # writes benchmark/boot.md
#   BENCH_SHORT=1 rake bench:boot   # a short run without figures
#
# Alternates whole processes of the same Ruby without Bundler, so that the load of the machine affects both.
# The goal is at most 30 ms more, without loading Rails, an ORM or OpenSSL.
require "bundler"
require "json"
require "open3"
require "rbconfig"
require_relative "support/paired"

class BootBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 3 : 41
  GOAL_MS = 30
  LIB = File.expand_path("../lib", __dir__)
  BARE = ["-e", "0"].freeze
  LOADED = ["-I#{LIB}", "-e", 'require "castellan"'].freeze
  WAYS = { "`ruby -e 0`" => [{}, BARE], "`require \"castellan\"`" => [{}, LOADED],
           "the same, switched off (`CASTELLAN=off`)" => [{ "CASTELLAN" => "off" }, LOADED] }.freeze
  HEAVY = %r{/(?:rails|railties|active_record|active_support|sequel|openssl|pg|sqlite3)(?:\.rb|\.so|/)}

  def run
    @ms = WAYS.keys.to_h { |name| [name, []] }
    ROUNDS.times { |round| turns(round).each { |name, way| @ms[name] << ms(*way) } }
    puts report
    File.write(File.join(__dir__, "boot.md"), report) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| file.puts(JSON.generate(figures)) } if ENV["BENCH_JSON"]
  end

  private

  def turns(round) = round.odd? ? WAYS.to_a.reverse : WAYS.to_a

  def ms(env, arguments)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    ruby(env, arguments)
    (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000
  end

  def ruby(env, arguments)
    output, status = Bundler.with_unbundled_env { Open3.capture2(env, RbConfig.ruby, *arguments) }
    status.success? ? output : abort("ruby #{arguments.join(' ')} failed")
  end

  def figures
    bare, loaded = medians.values
    { bench: "boot", ruby: RUBY_VERSION, goal_ms: GOAL_MS, ms: medians, more_ms: (loaded - bare).round(2), heavy: heavy }
  end

  def medians
    @ms.transform_values { |values| Castellan::Figures.median(values).round(2) }
  end

  # @return [Array<String>] loaded features that must not be loaded
  def heavy
    @heavy ||= ruby({}, [*LOADED[0, 2], "#{LOADED.last}; puts $LOADED_FEATURES"]).lines(chomp: true).grep(HEAVY)
  end

  def report
    bare = medians.values.first
    rows = medians.map { |name, value| format("| %s | %.1f | %+.1f |\n", name, value, value - bare) }
    "# What requiring Castellan costs\n\nRuby #{RUBY_VERSION}, #{ROUNDS} processes each, taking turns; medians. Written by " \
      "`rake bench:boot`.\n\n" \
      "| process | ms | more |\n|---|---|---|\n#{rows.join}\n" \
      "The goal is at most #{GOAL_MS} ms more: #{figures[:more_ms] <= GOAL_MS ? 'reached' : 'not reached'}. " \
      "Of Rails, an ORM, a driver or OpenSSL it loads #{heavy.empty? ? 'nothing' : heavy.join(', ')}.\n"
  end
end

BootBenchmark.new.run
