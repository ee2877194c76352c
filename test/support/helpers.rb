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
  #   large_runs_only                # skips, except in bin/test --all
  #   with_env("CASTELLAN" => "off") { … }
  #   Dir.mktmpdir { |dir| write_files(dir, "config.ru" => "run App\n") }
  #   allocated_objects { render }   # => 12
  #   run_ruby("-w", "-e", "require 'castellan'; puts Castellan::VERSION")   # => "0.1.0\n"
  module TestHelpers
    # Skips the test unless these servers (keys of TestServers::BINARIES or MODULES) are installed.
    def needs(*names)
      missing = names.reject { |name| TestServers.available?(name) }
      skip "needs #{missing.join(' and ')}" if missing.any?
    end

    # @return [Boolean] true in `bin/test --all`, which has large random inputs and every variant of a page
    def self.all? = ENV["CASTELLAN_TEST"] == "all"

    # @return [Boolean] true in the quick `bin/test`, which has each database and each ORM, but not every pair
    def self.part? = ENV["CASTELLAN_TEST"] == "part"

    # Skips a slow test that rarely fails when no other test does.
    def large_runs_only
      skip "runs with bin/test --all" unless TestHelpers.all?
    end

    # With CI=true, a skipped test is a failure.
    def skip(reason = nil, *)
      flunk("skipped, and CI=true forbids it: #{reason}") if ENV["CI"] == "true"
      super
    end

    def free_port = TestServers.free_port

    # Waits until the block returns a truthy value.
    def eventually(seconds = 30)
      deadline = TestServers.now + seconds
      until (answer = yield)
        flunk("did not happen within #{seconds} s") if TestServers.now > deadline
        sleep 0.005
      end
      assert answer
    end

    # Sets environment variables during the block; nil deletes a variable.
    def with_env(variables)
      before = variables.to_h { |name, _| [name, ENV.fetch(name, nil)] }
      ENV.update(variables)
      yield
    ensure
      ENV.update(before)
    end

    # @return [Integer] the number of objects that the block allocates; without GC, because finalizers
    #   allocate as well
    def allocated_objects
      GC.disable
      before = GC.stat(:total_allocated_objects)
      yield
      GC.stat(:total_allocated_objects) - before
    ensure
      GC.enable
    end

    # @param files [Hash{String => String}] contents by path in the directory
    def write_files(directory, files, perm: 0o644)
      files.each do |path, text|
        FileUtils.mkdir_p(File.join(directory, File.dirname(path)))
        File.write(File.join(directory, path), text, perm: perm)
      end
    end

    # Runs Ruby with the library of this checkout, in this bundle. Fails if the program fails.
    # @param env [Hash] environment variables; nil deletes a variable
    # @param options options of Process.spawn, e.g. chdir:
    # @return [String] standard output
    def run_ruby(*arguments, env: {}, **options)
      output, errors, status = Open3.capture3(env, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", *arguments, **options)
      assert status.success?, output + errors
      output
    end

    # Runs code like `ruby -e`, in a process that has loaded Rails. Fails if the program fails.
    # @return [String] standard output
    def run_rails(code, chdir:, env: {})
      output, errors, succeeded = PreloadedRails.run(code, chdir: chdir, env: env)
      assert succeeded, output + errors
      output
    end
  end
end

Minitest::Test.include(Castellan::TestHelpers)
