# frozen_string_literal: true

require "etc"
require "json"
require "tmpdir"
require_relative "installer"
require_relative "newest_ruby"

module Castellan
  # Implements bin/test: installs what is missing, then checks the style and runs the tests.
  #
  #   Castellan::TestRun.new([]).call                                              # all that a change can break
  #   Castellan::TestRun.new(%w[--all]).call                                       # everything; .ci/run calls this
  #   Castellan::TestRun.new(%w[test/recording_test.rb -n /fiber/ --seed 1]).call  # these files, with options of minitest
  #
  # Several processes share the tests (TEST_PROCESSES=1 for one process), each with a closing line. What fails
  # is printed again at the end. For work that runs at the same time, only the time after the end of the tests
  # is reported, and its output only if it failed. With CI=true, a missing server, a skipped test and a run
  # over its budget are failures.
  class TestRun
    LOADER = 'ARGV.take_while { |argument| !argument.start_with?("-") }.each { |file| require file }; ' \
             'ARGV.shift until ARGV.empty? || ARGV.first.start_with?("-")'
    # Tests of whole programs boot applications, install gems, replay the demo or wait for proxies, a minute each.
    WHOLE_PROGRAMS = "test/{packaging,bundles,readme_rails}_test.rb test/{demo,generators,examples,benchmark}/**/*_test.rb " \
                     "test/doctor/{rails_api,rails_quick_start,plain_apps}_test.rb test/profile/page/story_test.rb " \
                     "test/detect/**/users_example*_test.rb test/serve/clients_test.rb test/purge/directives_test.rb"
    OLDEST_RAILS = "gemfiles/rails_7_1.gemfile"
    RAILS_INTERNALS = "test/{contract,railtie}_test.rb test/instrument/*_test.rb test/versions/*_test.rb test/profile/rails_test.rb " \
                      "test/rows/active_record*_test.rb test/rows/{association_kinds,records}_test.rb " \
                      "test/rows/active_record_rows/**/*_test.rb"
    ON_NEWEST_RAILS = "test/{contract,controller,railtie,document}_test.rb test/purge/{purge,refresh}_test.rb " \
                      "test/{versions,keeper,document,rows,http_cache}/**/*_test.rb"
    # Two more than there are processors, because tests wait for servers and browsers, but at most five,
    # because each process has its own servers.
    PROCESSES = Integer(ENV.fetch("TEST_PROCESSES") { (Etc.nprocessors + 2).clamp(2, 5) })
    # Without installing. Everything takes 20 minutes on a fast machine and 45 to 58 on a slow one.
    BUDGET_SECONDS = { part: 8 * 60, all: 70 * 60 }.freeze
    SLOWEST = 10
    # What runs besides the tests, one after the other. The benchmarks are too short here to measure anything.
    ASIDE = {
      "benchmarks" => ->(run, log) { run.rake("bench", "BENCH_SHORT=1", log: log) },
      "AddressSanitizer" => ->(run, log) { !run.sanitizer? || run.rake("asan", log: log) },
      "Rails 8.1" => ->(run, log) { run.newest_rails(log) }
    }.freeze
    private_constant :LOADER, :SLOWEST, :ASIDE

    # @param arguments [Array<String>] `--all`; or test files and directories, then options of minitest
    def initialize(arguments, out: $stdout)
      @all = arguments.first == "--all"
      arguments = arguments.drop(1) if @all
      paths, @options = arguments.partition { |argument| File.exist?(argument) }
      @missing = arguments.take_while { |argument| !argument.start_with?("-") } - paths
      @files = paths.map { |path| File.expand_path(path) }
                    .flat_map { |path| File.directory?(path) ? Dir[File.join(path, "**/*_test.rb")] : path }
      @out = out
      @installer = Installer.new(out:)
      @skips = {}
      @slowest = {}
      @seconds = {}
      @failures = []
    end

    # @return [Integer] the exit status: 1 if something failed, 2 if a file does not exist
    def call
      return missing if @missing.any?

      prepare
      failed = steps.reject { |name, step| timed(name, &step) }.map(&:first)
      failed << "servers" if ci? && @left_out.any?
      failed << "time budget" if ci? && @files.empty? && @seconds.values.sum > budget
      @out.puts slowest, times, @failures if @files.empty?
      @out.puts last_lines(failed)
      failed.empty? ? 0 : 1
    end

    # @param log [String, nil] the file for the output; nil for the terminal
    # @return [Boolean]
    def rake(*arguments, log: nil)
      bundle_exec({}, RbConfig.ruby, "-S", "rake", "--silent", *arguments, **(log ? { %i[out err] => log } : {}))
    end

    # @return [Boolean]
    def newest_rails(log) = !@newest.available? || @newest.run(relative(files_of(ON_NEWEST_RAILS)), log: log)

    # If gcc does not have a library, it prints only its name.
    # @return [Boolean]
    def sanitizer? = `gcc -print-file-name=libasan.so 2>&1`.start_with?("/")

    private

    def missing
      @out.puts "bin/test: no such file: #{@missing.join(", ")}"
      2
    end

    def prepare
      Dir.chdir(Installer::ROOT)
      @installer.gems
      @left_out = @installer.servers
      @installer.compile
      @newest = NewestRuby.new(out: @out)
      @left_out += ["Rails 8.1 (it needs Ruby 3.2, or root on Debian)"] if @all && !(@newest.available? && @newest.install)
    end

    def steps
      return { "tests" => -> { tests(@files) } } unless @files.empty?
      return { "rubocop" => -> { rake("rubocop") }, "tests" => -> { part } } unless @all

      aside = ASIDE.keys.to_h { |name| [name, Queue.new] }
      Thread.new { aside.each { |name, ended| ended << aside(name) } }
      { "rubocop" => -> { rake("rubocop") }, "Rails 7.1" => -> { oldest_rails }, "tests" => -> { whole },
        **aside.to_h { |name, ended| [name, -> { passed?(*ended.pop) }] } }
    end

    def part = tests(all_files - files_of(WHOLE_PROGRAMS), { "CASTELLAN_TEST" => "part" }, processes: PROCESSES)
    def whole = tests(all_files, { "CASTELLAN_TEST" => "all" }, processes: PROCESSES)

    # @return [Array(Boolean, String)] whether it passed, and its output
    def aside(name)
      Dir.mktmpdir("castellan-aside-") do |directory|
        log = File.join(directory, "log")
        passed = ASIDE.fetch(name).call(self, log)
        [passed, File.exist?(log) ? File.read(log) : ""]
      end
    rescue StandardError => error
      [false, error.full_message]
    end

    def passed?(passed, output)
      @out.puts output unless passed
      passed
    end

    def oldest_rails
      tests(files_of(RAILS_INTERNALS), { "BUNDLE_GEMFILE" => File.expand_path(OLDEST_RAILS) }, processes: PROCESSES)
    end

    def timed(name)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
    ensure
      @seconds[name] = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end

    def budget = BUDGET_SECONDS.fetch(@all ? :all : :part)
    def all_files = Dir[File.join(Installer::ROOT, "test/**/*_test.rb")]
    def files_of(patterns) = patterns.split.flat_map { |pattern| Dir[File.join(Installer::ROOT, pattern)] }
    def relative(files) = files.map { |file| file.delete_prefix("#{Installer::ROOT}/") }
    def ci? = ENV["CI"] == "true"

    # Prints the output of all processes but the first when they have ended.
    def tests(files, env = {}, processes: 1)
      Dir.mktmpdir("castellan-test-run-") do |directory|
        env = { "CASTELLAN_DIVIDED" => File.join(directory, "classes").tap { |classes| Dir.mkdir(classes) }, **env } if processes > 1
        running = Array.new(processes) { |number| start(files, env, File.join(directory, number.to_s), aside: number.positive?) }
        passed = running.map { |pid| Process.wait2(pid).last.success? }
        Dir[File.join(directory, "*.out")].each { |output| @out.puts File.read(output) }
        running.each_index { |number| take(File.join(directory, "#{number}.report")) }
        passed.all?
      end
    end

    def take(path)
      return @failures << "A process of the tests ended without a report: its output is above." unless File.exist?(path)

      report = JSON.parse(File.read(path))
      @failures.concat(report.fetch("failures"))
      @skips.merge!(report.fetch("skips")) { |_, one, other| one + other }
      @slowest.merge!(report.fetch("slowest")) { |_, one, other| [one, other].max }
    end

    def slowest
      @slowest.max_by(SLOWEST) { |_, seconds| seconds }.map { |name, seconds| format("%6.1f s  %s", seconds, name) }
    end

    def times
      steps = @seconds.map { |name, seconds| format("%s %.0f s", name, seconds) }.join(", ")
      format("bin/test: %.0f s (%s); the budget is %d s", @seconds.values.sum, steps, budget)
    end

    def start(files, env, name, aside:)
      command = [RbConfig.ruby, "-w", "-Ilib", "-Itest", "-e", LOADER, "--", *files, *@options]
      Bundler.with_unbundled_env do
        Process.spawn({ "CASTELLAN_RUN_REPORT" => "#{name}.report", **env }, RbConfig.ruby, "-S", "bundle", "exec", *command,
                      **(aside ? { %i[out err] => "#{name}.out" } : {}))
      end
    end

    def bundle_exec(env, *command, **streams)
      Bundler.with_unbundled_env { system(env, RbConfig.ruby, "-S", "bundle", "exec", *command, **streams) }
    end

    def last_lines(failed)
      ["bin/test: #{failed.empty? ? "passed" : "FAILED (#{failed.join(", ")})"}; #{omissions}", *names_of_failures]
    end

    # The last lines, because a CI may show no more than these.
    def names_of_failures
      return [] unless @files.empty?

      @failures.map { |failure| "  failed: #{failure.delete_prefix("Failure:").delete_prefix("Error:").split.join(" ")[0, 300]}" }
    end

    def omissions
      reasons = @skips.map { |reason, count| "#{count} × #{reason}" }
      ["missing: #{@left_out.empty? ? "nothing" : @left_out.join(", ")}",
       "#{@skips.values.sum} tests skipped#{" (#{reasons.join("; ")})" if reasons.any?}",
       ("whole programs and large inputs run with --all" if @files.empty? && !@all)].compact.join("; ")
    end
  end
end
