# frozen_string_literal: true

require "bundler"
require "json"
require "open3"
require "tempfile"
require "tmpdir"

module Castellan
  module Demo
    # Runs an example application in its own process and bundle.
    #
    #   example = Example.new("examples/posts", environment: { "WITH_CASTELLAN" => "1" })
    #   example.serve { |url| LoadTest.run("#{url}/posts/public") }
    #   example.doctor(["/users/baseline"], headers: {}) { |row| p row["queries"] }
    class Example
      # @return [String]
      attr_reader :directory

      # @param directory [String]
      # @param environment [Hash{String => String}] in addition to RAILS_ENV and RACK_ENV, which are
      #   production
      def initialize(directory, environment: {})
        @directory = File.expand_path(directory)
        @environment = { "RAILS_ENV" => "production", "RACK_ENV" => "production", "APP_ENV" => "production",
                         "BUNDLE_GEMFILE" => File.join(@directory, "Gemfile"), "RUBYOPT" => nil, **environment }
      end

      # @param environment [Hash{String => String}] more variables
      # @return [Example] the same application with these variables
      def with(environment)
        Example.new(directory, environment: { **@environment, **environment })
      end

      # Installs gems and fills the database, if needed.
      # @raise [Error] with the output of the setup
      def setup
        said, status = Bundler.with_unbundled_env { Open3.capture2e(@environment, "bin/setup", chdir: directory, stdin_data: "") }
        raise Error, "#{directory}/bin/setup: #{said.lines.last(5).join.strip}" unless status.success?
      end

      # Runs Puma on a free port during the block.
      # @param rackup [String]
      # @yieldparam url [String] "http://127.0.0.1:41321"
      def serve(rackup: "config.ru")
        port = Child.free_port
        log = log_file
        pid = start({ "PORT" => port.to_s }, ["puma", "-C", "config/puma.rb", rackup], out: log.path, err: %i[child out])
        Child.wait_for(port, pid, directory, log.path)
        yield "http://127.0.0.1:#{port}"
      ensure
        Child.stop(pid)
        log&.close!
      end

      # Examines requests in a process of the application, see {CLI::DoctorCommand}.
      # @param targets [Array<Array(String, Boolean)>] paths, and whether to measure each or only to send it
      # @param runs [Integer] the maximum number of measured runs of each request
      # @yieldparam row [Hash] the doctor's JSON of one request, with "body"
      # @raise [Error] with the reason that the doctor gives
      def doctor(targets, headers: {}, memory: true, runs: 3)
        Dir.mktmpdir("castellan-demo") do |bodies|
          requests = targets.flat_map { |target, measured| [measured ? "--get" : "--check", target] }
          lines = headers.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
          command = ["castellan", "doctor", "config.ru", "--json", "--no-try", "--limit", "3600", "--runs", runs.to_s, "--bodies", bodies,
                     *("--no-memory" unless memory), *requests, *lines]
          lines_of(command).with_index(1) do |line, number|
            yield JSON.parse(line).merge("body" => File.binread(File.join(bodies, "#{number}.body")))
          end
        end
      end

      private

      # Not IO.popen, because on Ctrl-C it would wait for the process instead of ending it.
      def lines_of(command)
        return enum_for(:lines_of, command) unless block_given?

        log = log_file
        reader, writer = IO.pipe
        pid = start({}, command, out: writer, err: log.path)
        writer.close
        reader.each_line { |line| yield line }
        raise Error, "#{directory}: #{Child.tail(log.path)}" unless ended_well?(pid).tap { pid = nil }
      ensure
        reader&.close
        Child.stop(pid)
        log&.close!
      end

      def ended_well?(pid)
        Process.wait2(pid).last.success?
      ensure
        Watchdog.forget(pid)
      end

      def start(environment, command, **streams)
        Bundler.with_unbundled_env do
          Child.start({ **@environment, **environment }, ["bundle", "exec", *command], chdir: directory, **streams)
        end
      end

      def log_file
        Tempfile.new("castellan-example")
      end
    end
  end
end
