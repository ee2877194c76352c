# frozen_string_literal: true

require "fileutils"
require "optparse"

module Castellan
  module Demo
    # The command line of `bin/demo`: replays the stories, prints the ledger and writes the report.
    class Command
      DIRECTORY = "castellan-report"
      # The texts of the report about each story.
      ABOUT = {
        "users" => { title: "Users", command: "bin/demo --only users",
                     about: "An index of users filtered by role, in JSON:API, and its way from seven queries a user to none of them. " \
                            "Milliseconds of one warm request." },
        "users_1000" => { title: "Users, 1,000 of them", command: "bin/demo --only users",
                          about: "The same with 1,000 users in the answer." },
        "posts" => { title: "Posts", command: "bin/demo --only posts",
                     about: "A viewer's hundred posts with author and comments, 10 clients at once; the castle's layers one by one." },
        "mail_logs" => { title: "Mail logs", command: "bin/demo --only mail_logs",
                         about: "A page of 20 with its total, 10 clients at once; from Rails to bare Rack." }
      }.freeze
      private_constant :ABOUT

      def initialize(argv, out: $stdout, err: $stderr)
        @argv = argv
        @out = out
        @err = err
        @options = { stories: Replay::STORIES, seconds: 5.0, runs: 3, directory: DIRECTORY, open: out.tty? }
      end

      # @return [Integer] 0; 1 if a step could not be measured or its response was wrong; 2 for wrong
      #   arguments; 130 after an interruption, which prints the results so far
      def call
        catch(:helped) { run(*parser.parse(@argv)) } || 0
      rescue OptionParser::ParseError, ConfigurationError => error
        @err.puts "bin/demo: #{error.message}; see bin/demo --help"
        2
      end

      private

      def run(*others)
        raise OptionParser::NeedlessArgument, others.join(" ") if others.any?
        raise OptionParser::InvalidArgument, "--seconds #{@options[:seconds]}: more than 0" unless @options[:seconds].positive?
        raise OptionParser::InvalidArgument, "--runs #{@options[:runs]}: at least 1" unless @options[:runs].positive?

        replay = Replay.new(**@options.slice(:stories, :seconds, :runs), out: @err)
        FileUtils.mkdir_p(@options[:directory]) # fail now, not after minutes of measuring
        status = replay(replay)
        show(replay) if replay.ledger.rows.any?
        status
      rescue SystemCallError => error
        @err.puts "bin/demo: the report cannot be written to #{@options[:directory]}: #{error.message}; name another: --report DIR"
        1
      end

      def replay(replay)
        replay.call
        0
      rescue Error => error
        @err.puts "bin/demo: #{error.message}"
        1
      rescue Interrupt
        @err.puts "", "bin/demo: interrupted; this was measured until now:"
        130
      end

      def parser
        OptionParser.new do |options|
          options.banner = "bin/demo [--only users,posts,mail_logs] [--seconds 5] [--runs 3] [--report DIR]"
          options.on("--only STORIES", Array, "these stories (users,posts,mail_logs)") { |stories| @options[:stories] = stories }
          options.on("--seconds N", Float, "of load for each step (5)") { |seconds| @options[:seconds] = seconds }
          options.on("--runs N", Integer, "measured runs of each request of the users, at the most (3)") { |runs| @options[:runs] = runs }
          options.on("--report DIR", "where to write index.html, ledger.md and ledger.json (#{DIRECTORY})") do |directory|
            @options[:directory] = directory
          end
          options.on("--[no-]open", "open the report in a browser (only on a terminal)") { |open| @options[:open] = open }
          options.on("-h", "--help") { @out.puts(options) || throw(:helped) }
        end
      end

      def show(replay)
        @out.puts replay.ledger.to_text, ""
        replay.goals.each { |goal| @out.puts goal_line(goal) }
        replay.left_out.each { |line| @out.puts line }
        files = Ledger::ReportFiles.new(replay.ledger, targets: replay.goals, ratios: replay.ratios, stories: ABOUT,
                                                       environment: replay.environment, commands: ["bin/demo"])
        files.write(@options[:directory])
        page = File.join(@options[:directory], "index.html")
        @out.puts "", format("measured in %.0f s; the report is %s", replay.elapsed, page)
        browse(page) if @options[:open]
      end

      def goal_line(goal)
        "#{goal[:title]}: #{goal[:measured]} (goal #{goal[:goal]}): #{goal[:reached] ? "reached" : "NOT REACHED"}"
      end

      def browse(page)
        program = %w[xdg-open open].find { |name| ENV["PATH"].to_s.split(File::PATH_SEPARATOR).any? { |directory| File.executable?(File.join(directory, name)) } }
        return unless program && (ENV["DISPLAY"] || ENV["WAYLAND_DISPLAY"] || RUBY_PLATFORM.include?("darwin"))

        Process.detach(Process.spawn(program, page, out: File::NULL, err: File::NULL))
      end
    end
  end
end
