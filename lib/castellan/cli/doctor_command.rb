# frozen_string_literal: true

require "fileutils"
require "json"

module Castellan
  module CLI
    # Runs `castellan doctor [config.ru | app.rb] --get PATH -H 'Name: value'`.
    class DoctorCommand < Command
      DEFAULTS = { environment: "production", memory: true, try: true, runs: 5, limit: 120, json: false, bodies: nil, verb: "GET" }.freeze
      USAGE = "castellan doctor [config.ru | app.rb] --get PATH [-H 'Name: value'] [--env production]"
      private_constant :DEFAULTS

      def self.summary
        "prints what is slow at an endpoint of an application, and why"
      end

      private

      def interrupted = "interrupted; all transactions are rolled back"

      def run(file = nil, *others)
        raise WrongArguments, "needless argument: #{others.join(" ")}" if others.any?
        raise WrongArguments, "--runs #{@options[:runs]}: at least 1" unless @options[:runs].positive?
        raise WrongArguments, "--limit #{@options[:limit]}: more than 0 seconds" unless @options[:limit].positive?
        raise WrongArguments, "--step #{@step}: name a request to measure, such as --get /users" if @step && !measures?
        return show_ledger if ledger && @targets.empty? && @commands.empty?
        raise WrongArguments, "name a request: castellan doctor --get /users" if @targets.empty? && @commands.empty?
        raise Castellan::Error, "CASTELLAN=off is set, so no query would be seen; unset it" if Castellan.off?

        load_doctor
        requests = arguments { requested }
        FileUtils.mkdir_p(@options[:bodies]) if @options[:bodies]
        examine(file, requests)
        0
      end

      def measures? = @commands.any? || @targets.any?(&:last)

      def show_ledger
        raise Castellan::Error, "#{@ledger_file} has no steps; name a request: castellan doctor --get /users" if ledger.empty?

        @out.puts ledger
        0
      end

      def options(options)
        @targets, @commands, @headers, @options = [], [], {}, DEFAULTS.dup
        options.on("--get PATH", "a request to measure; repeatable") { |path| @targets << [path, true] }
        options.on("--check PATH", "a request that must succeed and is not measured; for --bodies") { |path| @targets << [path, false] }
        options.on("--curl COMMAND", "a request as a browser copies it as cURL; repeatable") { |command| @commands << command }
        header_option(options, @headers)
        options.on("-X", "--request VERB", "GET or HEAD (GET)") { |verb| @options[:verb] = verb }
        options.on("--env NAME", "the environment to boot in (production)") { |name| @options[:environment] = name }
        options.on("--runs N", Integer, "measured runs, at most (5)") { |runs| @options[:runs] = runs }
        options.on("--limit SECONDS", Float, "seconds for all requests and trials together (120)") { |limit| @options[:limit] = limit }
        options.on("--no-memory", "skip the run that counts allocated bytes, which is slow") { @options[:memory] = false }
        options.on("--no-try", "skip the runs that try each fix") { @options[:try] = false }
        options.on("--json", "one JSON object per request, one line each") { @options[:json] = true }
        options.on("--bodies DIR", "write each response's body there, as 1.body, 2.body …") do |dir|
          @options[:bodies] = File.expand_path(dir)
        end
        ledger_options(options)
      end

      # @return [Array<Array(Doctor::RackRequest, Boolean)>] the requests, and whether to measure each
      def requested
        @targets.map { |target, measured| [Doctor::RackRequest.new(target, verb: @options[:verb], headers: @headers), measured] } +
          @commands.map { |command| [Doctor::CurlCommand.parse(command).with(@headers), true] }
      end

      def examine(file, requests)
        @output = Doctor::StandardOutput.new(@out)
        booting = Doctor::Progress.during(@err) do |progress|
          progress.step = "booting the application"
          [Doctor::Application.boot(file, environment: @options[:environment]), Doctor::Safety.engage]
        end
        Doctor::Progress.during(@err, limit: @options[:limit]) do |progress|
          @progress = progress
          compare_tables(*booting) { |application| requests.each.with_index(1) { |request, number| visit(application, *request, number) } }
        end
      rescue Doctor::Error => error
        printed = @output&.last_lines.to_s
        raise printed.empty? ? error : error.class.new("#{error.message}\nThe application printed last:\n#{printed.chomp}")
      ensure
        @output&.close
      end

      def compare_tables(application, held_back)
        @progress.step = "reading the tables"
        comparison = Doctor::TableComparison.new(Doctor::Sandbox.connected)
        introduce(application, held_back, comparison) unless @options[:json]
        yield application
      ensure
        report_changes(comparison) if comparison
      end

      def report_changes(comparison)
        @progress.step = "comparing the tables"
        changes = comparison.changes
        return if changes.empty?

        @err.puts "castellan doctor: tables changed although every request was rolled back: #{changes.join("; ")}",
                  "A connection that the application opened by itself, a thread of Sequel or another process wrote that."
      end

      def introduce(application, held_back, comparison)
        databases = Doctor::Sandbox.connected
        @output.puts application, *databases.map { |database| "database: #{database}" },
                     "#{ruby}; every request runs in a transaction that is rolled back",
                     *(unpromised(comparison) if databases.any?), *("held back: #{held_back.join("; ")}" if held_back.any?)
      end

      def ruby = "Ruby #{RUBY_VERSION}, YJIT #{defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "on" : "off"}"

      # Writes through connections of other libraries are not rolled back.
      def unpromised(comparison)
        left_out = ", #{comparison.left_out} are not: reading them takes too long" if comparison.left_out.positive?
        "not rolled back: what the application writes on connections of its own (PG.connect) or in threads of Sequel; " \
          "#{comparison.size} tables are compared before and after#{left_out}"
      end

      def visit(application, request, measured, number)
        examination = Doctor::Examination.new(application, request, runs: @options[:runs], memory: @options[:memory], progress: @progress)
        measured ? examination.call : examination.check
        File.binwrite(File.join(@options[:bodies], "#{number}.body"), examination.body) if @options[:bodies]
        return report(application, examination) if measured

        @output.puts(@options[:json] ? JSON.generate("request" => request.to_s) : "\n#{request}: answered")
      end

      def report(application, examination)
        trials = @options[:try] ? Doctor::Trials.of(application, examination.request, examination.findings, progress: @progress) : {}
        diagnosis = Doctor::Diagnosis.new(examination, comparable: !application.reloading?, trials: trials,
                                                       rows: Doctor::Sandbox.row_counts(examination.tables), reached: @progress.reached)
        @options[:json] ? @output.puts(JSON.generate(diagnosis.to_h)) : @output.puts("", diagnosis)
        note(application, examination, diagnosis) if ledger
      end

      def note(application, examination, diagnosis)
        request = examination.request.to_s
        conditions = [ruby, @options[:environment], ("code is reloaded" if application.reloading?),
                      ("the profiled run" if examination.runs.zero?)].compact.join(", ")
        ledger.add(request: request, step: @step, conditions: conditions, figures: diagnosis.to_h.transform_keys(&:to_sym),
                   body: examination.body)
        @output.puts("", ledger.to_s(request)) unless @options[:json]
      end
    end
  end
end
