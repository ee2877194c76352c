# frozen_string_literal: true

require "etc"
require "json"
require "tmpdir"
require_relative "installer"

module Castellan
  # What bin/test does: install what is missing, compile, check the style, run every benchmark shortly, run the tests.
  #
  #   Castellan::TestRun.new([]).call                                              # everything
  #   Castellan::TestRun.new(%w[test/recording_test.rb -n /fiber/ --seed 1]).call   # these files, these options of minitest
  #
  # The tests come last, so that their closing lines are among the last on the screen. All of them are divided among several processes
  # (TEST_PROCESSES=1: one), so there is a closing line for each. With CI=true a server that is not installed, and
  # every skipped test, is a failure.
  class TestRun
    LOADER = 'ARGV.take_while { |argument| !argument.start_with?("-") }.each { |file| require file }; ' \
             'ARGV.shift until ARGV.empty? || ARGV.first.start_with?("-")'
    OLDER_RAILS = "gemfiles/rails_7_1.gemfile"
    TOUCHES_RAILS = "test/{rows,instrument,detect,versions,keeper,document,serializer,compat,generators}/**/*_test.rb " \
                    "test/profile/{rails,rows,middleware,layers,recorder}_test.rb test/{document,contract,railtie,readme_rails}_test.rb"
    # Of these, those that ask an example, which is a process with Rails of its own whatever the tests' is.
    RAILS_OF_THEIR_OWN = "test/detect/**/users_example*_test.rb"
    # Tests wait for servers and browsers, so one more than there are processors. Each has servers of its own, so no more than five.
    PROCESSES = Integer(ENV.fetch("TEST_PROCESSES") { (Etc.nprocessors + 1).clamp(2, 5) })
    SLOWEST = 10 # tests that are named before the last line
    private_constant :LOADER, :SLOWEST

    # @param arguments [Array<String>] test files or their directories, then options of minitest
    def initialize(arguments, out: $stdout)
      paths, @options = arguments.partition { |argument| File.exist?(argument) }
      @missing = arguments.take_while { |argument| !argument.start_with?("-") } - paths
      @files = paths.map { |path| File.expand_path(path) }
                    .flat_map { |path| File.directory?(path) ? Dir[File.join(path, "**/*_test.rb")] : path }
      @out = out
      @installer = Installer.new(out:)
      @skips = {}
      @slowest = {}
    end

    # @return [Integer] the exit status: 1 when something failed, 2 when there is no such file
    def call
      return missing if @missing.any?

      prepare
      failed = steps.reject { |_, step| step.call }.map(&:first)
      failed << "servers" if ci? && @left_out.any?
      @out.puts slowest if @files.empty?
      @out.puts last_line(failed)
      failed.empty? ? 0 : 1
    end

    private

    def missing
      @out.puts "bin/test: there is no #{@missing.join(", ")}"
      2
    end

    def prepare
      Dir.chdir(Installer::ROOT)
      @installer.gems
      @left_out = @installer.servers
      @installer.compile
    end

    def steps
      return { "tests" => -> { tests(@files) } } unless @files.empty?

      { "rubocop" => -> { rake("rubocop") }, "bench" => -> { rake("bench", "BENCH_SHORT=1") },
        "encoder under AddressSanitizer" => -> { !sanitizer? || rake("asan") },
        "tests on Rails 7.1" => -> { tests(rails_files, { "BUNDLE_GEMFILE" => File.expand_path(OLDER_RAILS) }, processes: PROCESSES) },
        "tests" => -> { tests(all_files, processes: PROCESSES) } }
    end

    def all_files = Dir[File.join(Installer::ROOT, "test/**/*_test.rb")]
    # gcc prints the bare name of a library that it does not have.
    def sanitizer? = `gcc -print-file-name=libasan.so 2>&1`.start_with?("/")
    def rails_files = files_of(TOUCHES_RAILS) - files_of(RAILS_OF_THEIR_OWN)
    def files_of(patterns) = patterns.split.flat_map { |pattern| Dir[File.join(Installer::ROOT, pattern)] }
    def ci? = ENV["CI"] == "true"

    def rake(*arguments)
      bundle_exec({}, RbConfig.ruby, "-S", "rake", "--silent", *arguments)
    end

    # All processes but the first are shown when they have ended.
    def tests(files, env = {}, processes: 1)
      Dir.mktmpdir("castellan-test-run-") do |directory|
        env = { "CASTELLAN_DIVIDED" => File.join(directory, "classes").tap { |classes| Dir.mkdir(classes) }, **env } if processes > 1
        running = Array.new(processes) { |number| start(files, env, File.join(directory, number.to_s), aside: number.positive?) }
        passed = running.map { |pid| Process.wait2(pid).last.success? }
        Dir[File.join(directory, "*.out")].each { |said| @out.puts File.read(said) }
        Dir[File.join(directory, "*.report")].each { |report| take(JSON.parse(File.read(report))) }
        passed.all?
      end
    end

    def take(report)
      @skips.merge!(report.fetch("skips")) { |_, one, other| one + other }
      @slowest.merge!(report.fetch("slowest")) { |_, one, other| [one, other].max }
    end

    def slowest
      @slowest.max_by(SLOWEST) { |_, seconds| seconds }.map { |name, seconds| format("%6.1f s  %s", seconds, name) }
    end

    def start(files, env, name, aside:)
      command = [RbConfig.ruby, "-w", "-Ilib", "-Itest", "-e", LOADER, "--", *files, *@options]
      Bundler.with_unbundled_env do
        Process.spawn({ "CASTELLAN_RUN_REPORT" => "#{name}.report", **env }, RbConfig.ruby, "-S", "bundle", "exec", *command,
                      **(aside ? { %i[out err] => "#{name}.out" } : {}))
      end
    end

    def bundle_exec(env, *command)
      Bundler.with_unbundled_env { system(env, RbConfig.ruby, "-S", "bundle", "exec", *command) }
    end

    def last_line(failed)
      "bin/test: #{failed.empty? ? 'passed' : "FAILED (#{failed.join(', ')})"}; #{omissions}"
    end

    def omissions
      return "nothing was left out, 0 tests skipped" if @left_out.empty? && @skips.empty?

      reasons = @skips.map { |reason, count| "#{count} × #{reason}" }
      "not installed: #{@left_out.empty? ? 'nothing' : @left_out.join(', ')}; #{@skips.values.sum} tests skipped" \
        "#{" (#{reasons.join('; ')})" if reasons.any?}"
    end
  end
end
