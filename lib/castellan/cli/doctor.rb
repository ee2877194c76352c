# frozen_string_literal: true

require "fileutils"
require "json"
require "optparse"

module Castellan
  module CLI
    # Runs `castellan doctor [config.ru | app.rb] --get PATH -H 'Name: value'`.
    class Doctor
      # @return [String]
      def self.summary
        "what is slow at an endpoint of an application, and why"
      end

      def initialize(argv, out: $stdout, err: $stderr)
        @argv = argv
        @out = out
        @err = err
        @targets = []
        @commands = []
        @headers = {}
        @options = { environment: "production", memory: true, try: true, runs: 5, json: false, bodies: nil, verb: "GET" }
      end

      # @return [Integer] 0; 1 if the application cannot be measured; 2 for wrong arguments; 130 after Ctrl-C
      def call
        load_room
        catch(:helped) { run(*parser.parse(@argv)) } || 0
      rescue OptionParser::ParseError => error
        @err.puts "castellan doctor: #{error.message}; see castellan doctor --help"
        2
      rescue Castellan::Error => error # Doctor::Error, or rack is missing
        @err.puts "castellan doctor: #{error.message}"
        1
      rescue Interrupt
        @err.puts "castellan doctor: interrupted; nothing was kept, all transactions are rolled back"
        130
      end

      private

      def run(file = nil, *others)
        raise OptionParser::NeedlessArgument, others.join(" ") if others.any?
        raise OptionParser::InvalidArgument, "--runs #{@options[:runs]}: at least 1" unless @options[:runs].positive?
        return usage if @targets.empty? && @commands.empty?
        raise Castellan::Error, "CASTELLAN=off is set, so no query would be seen; unset it" if Castellan.off?

        examine(file)
        0
      end

      # Loaded late, because it needs rack and the list of commands does not.
      def load_room
        require_relative "../doctor"
      rescue LoadError => error
        raise unless error.path.to_s.start_with?("rack")

        raise Castellan::Error, "rack is not here; run it in the application's folder and bundle: bundle exec castellan doctor --get /path"
      end

      def parser
        OptionParser.new do |options|
          options.banner = "castellan doctor [config.ru | app.rb] --get PATH [-H 'Name: value'] [--env production]"
          options.on("--get PATH", "the request; may be given several times") { |path| @targets << [path, true] }
          options.on("--check PATH", "a request that must succeed and is not measured; for --bodies") { |path| @targets << [path, false] }
          options.on("--curl COMMAND", "the request, as a browser copies it as cURL") { |command| @commands << command }
          options.on("-H", "--header LINE", "a header, 'Name: value'") { |line| header(line) }
          options.on("-X", "--request VERB", "GET or HEAD (GET)") { |verb| @options[:verb] = verb }
          options.on("--env NAME", "the environment to boot in (production)") { |name| @options[:environment] = name }
          options.on("--runs N", Integer, "measured runs at the most (5)") { |runs| @options[:runs] = runs }
          options.on("--no-memory", "leave out the run that counts bytes, which is slow") { @options[:memory] = false }
          options.on("--no-try", "leave out the requests that try each fix") { @options[:try] = false }
          options.on("--json", "one JSON object a request, a line each") { @options[:json] = true }
          options.on("--bodies DIR", "write each response's body there, as 1.body, 2.body …") { |dir| @options[:bodies] = dir }
          options.on("-h", "--help") { @out.puts(options) || throw(:helped) }
        end
      end

      def header(line)
        name, value = line.split(":", 2)
        raise OptionParser::InvalidArgument, "#{line.inspect} is not of the form 'Name: value'" unless value && !name.strip.empty?

        @headers[name.strip] = value.strip
      end

      def usage
        @err.puts "castellan doctor: name a request: castellan doctor --get /users"
        2
      end

      def examine(file)
        requests = requested
        FileUtils.mkdir_p(@options[:bodies]) if @options[:bodies]
        output = Castellan::Doctor::Output.aside(@out)
        Castellan::Doctor::Progress.during(@err) do |progress|
          @progress = progress
          examine_aside(file, requests, output)
        end
      rescue Castellan::Doctor::Error => error
        said = output&.said.to_s
        raise said.empty? ? error : error.class.new("#{error.message}\nThe application printed last:\n#{said.chomp}")
      ensure
        output&.close
      end

      def requested
        @targets.map { |target, measured| [Castellan::Doctor::Request.new(target, verb: @options[:verb], headers: @headers), measured] } +
          @commands.map { |command| [Castellan::Doctor::Curl.parse(command).with(@headers), true] }
      end

      def examine_aside(file, requests, output)
        application = Castellan::Doctor::Application.boot(file, environment: @options[:environment])
        held_back = Castellan::Doctor::Safety.engage
        @progress.step = "reading the tables"
        comparison = Castellan::Doctor::TableComparison.new(Castellan::Doctor::Databases.connected)
        introduce(application, held_back, output, comparison) unless @options[:json]
        examine_each(application, requests, output)
      ensure
        report_changes(comparison) if comparison
      end

      def examine_each(application, requests, output)
        requests.each.with_index(1) do |(request, measured), number|
          examination = Castellan::Doctor::Examination.new(application, request, runs: @options[:runs], memory: @options[:memory],
                                                                                 progress: @progress)
          measured ? examination.call : examination.check
          File.binwrite(File.join(@options[:bodies], "#{number}.body"), examination.body) if @options[:bodies]
          measured ? report(application, examination, output) : checked(examination, output)
        end
      end

      def report_changes(comparison)
        @progress.step = "comparing the tables"
        changes = comparison.changes
        return if changes.empty?

        @err.puts "castellan doctor: tables changed although every request was rolled back: #{changes.join("; ")}",
                  "A connection that the application opened by itself, a thread of Sequel or another process wrote that."
      end

      # Writes on connections outside of the ORMs are not rolled back.
      def unpromised(comparison)
        left_out = ", #{comparison.left_out} are not: reading them takes too long" if comparison.left_out.positive?
        "not rolled back: what the application writes on connections of its own (PG.connect) or in threads of Sequel; " \
          "#{comparison.size} tables are compared before and after#{left_out}"
      end

      def introduce(application, held_back, output, comparison)
        output.puts application
        Castellan::Doctor::Databases.connected.each { |database| output.puts "database: #{database}" }
        output.puts "Ruby #{RUBY_VERSION}, YJIT #{yjit}; every request runs in a transaction that is rolled back"
        output.puts unpromised(comparison) if Castellan::Doctor::Databases.connected.any?
        output.puts "held back: #{held_back.join("; ")}" if held_back.any?
      end

      def yjit
        defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "on" : "off"
      end

      def checked(examination, output)
        output.puts(@options[:json] ? JSON.generate("request" => examination.request.to_s) : "\n#{examination.request}: answered")
      end

      def report(application, examination, output)
        @progress.step = "#{examination.request}: trying the fixes"
        rows = Castellan::Doctor::Databases.row_counts(examination.tables)
        trials = @options[:try] ? Castellan::Doctor::Trials.of(application, examination.request, examination.findings) : {}
        report = Castellan::Doctor::Report.new(examination, comparable: !application.reloading?, rows: rows, trials: trials)
        @options[:json] ? output.puts(JSON.generate(report.to_h)) : output.puts("", report)
      end
    end
  end
end
