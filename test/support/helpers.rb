# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "preloaded_rails"

module Castellan
  # Helpers for all tests: servers, ports, environment, files, programs.
  #
  #   needs :postgres, :chromium
  #   large_runs_only                # skips unless bin/test --all runs
  #   with_env("CASTELLAN" => "off") { … }
  #   Dir.mktmpdir { |dir| write_files(dir, "config.ru" => "run App\n") }
  #   allocated_objects { render }   # => 12
  #   run_ruby("-w", "-e", "require 'castellan'; puts Castellan::VERSION")   # => "0.1.0\n"
  module TestHelpers
    # Skips unless these servers (keys of TestServers::BINARIES) are installed.
    def needs(*names)
      missing = names.reject { |name| TestServers.available?(name) }
      skip "needs #{missing.join(' and ')}" if missing.any?
    end

    # @return [Boolean] whether `bin/test --all` runs, with large random inputs and every variant of a page
    def self.all? = ENV["CASTELLAN_TEST"] == "all"

    # @return [Boolean] whether the quick `bin/test` runs, with each database and each ORM, but not every pair
    def self.part? = ENV["CASTELLAN_TEST"] == "part"

    # Skips a slow test that rarely fails alone.
    def large_runs_only
      skip "runs with bin/test --all" unless TestHelpers.all?
    end

    # With CI=true a skip is a failure.
    def skip(reason = nil, *)
      flunk("skipped, and CI=true forbids it: #{reason}") if ENV["CI"] == "true"
      super
    end

    def free_port = TestServers.free_port

    # Waits until the block returns something true.
    def eventually(seconds = 30)
      deadline = TestServers.now + seconds
      until (answer = yield)
        flunk("did not happen within #{seconds} s") if TestServers.now > deadline
        sleep 0.005
      end
      assert answer
    end

    # Sets environment variables for the block (nil deletes one) and restores them.
    def with_env(variables)
      before = variables.to_h { |name, _| [name, ENV.fetch(name, nil)] }
      ENV.update(variables)
      yield
    ensure
      ENV.update(before)
    end

    # @return [Integer] the number of objects that the block allocates; GC is disabled, because finalizers
    #   allocate, too
    def allocated_objects
      GC.disable
      before = GC.stat(:total_allocated_objects)
      yield
      GC.stat(:total_allocated_objects) - before
    ensure
      GC.enable
    end

    # @param files [Hash{String => String}] paths below the directory, and their texts
    def write_files(directory, files, perm: 0o644)
      files.each do |path, text|
        FileUtils.mkdir_p(File.join(directory, File.dirname(path)))
        File.write(File.join(directory, path), text, perm: perm)
      end
    end

    # Runs Ruby with the library of this checkout, in this bundle; fails if the program fails.
    # @param env [Hash] environment variables; nil deletes one
    # @param options of Process.spawn, such as chdir:
    # @return [String] standard output
    def run_ruby(*arguments, env: {}, **options)
      output, errors, status = Open3.capture3(env, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", *arguments, **options)
      assert status.success?, output + errors
      output
    end

    # Runs code as `ruby -e` does, in a process that has loaded Rails; fails if the program fails.
    # @return [String] standard output
    def run_rails(code, chdir:, env: {})
      output, errors, succeeded = PreloadedRails.run(code, chdir: chdir, env: env)
      assert succeeded, output + errors
      output
    end
  end
end

Minitest::Test.include(Castellan::TestHelpers)
