# frozen_string_literal: true

require "castellan/detect/known_verdicts"

module Castellan
  module Detect
    # Watches each request for repeated queries: findings go to the log, into the response header `castellan-findings` and, where
    # it is named, into a file of JSON lines; never into the body.
    #
    #   use Castellan::Detect::Middleware                                                     # in development
    #   use Castellan::Detect::Middleware, authorize: ->(env) { env["REMOTE_ADDR"] == "127.0.0.1" }   # in production
    #
    # In production nothing is watched unless `authorize` says so for the request. Queries of a body that is made while it
    # is sent are seen too: they are logged when it is closed, after the header has gone. A request that raises or runs out of time
    # has its findings in the log. What goes wrong in here is logged and changes no response. For production traffic at large there
    # is {Detect.production}, which samples.
    #
    # With `evidence: 0.1` a tenth of the requests also show which eager loads nothing reads: 20 of them make a finding ({Evidence}).
    class Middleware
      HEADER = "castellan-findings"
      NONE = [].freeze
      private_constant :NONE
      EVIDENCE = false

      # @param app [#call]
      # @param authorize [#call, nil] asked with the Rack environment whether to watch; by default yes, but for production
      # @param logger [#warn, nil] by default what the server offers: `rack.logger`, else `rack.errors`
      # @param json_lines [String, nil] a file; each finding is added to it as a line of JSON with the request's method and path
      # @param repeats [Integer] how many statements of one shape make a finding
      # @param min_ms [Numeric] how long they must take from the first to the last
      # @param slow_ms [Numeric, nil] from how long one statement is a finding by itself; nil: none is
      # @param evidence [Numeric, Evidence::Sampled, false] the share of requests in which reads of associations are noted, or what notes
      #   them, where the page of profiles shows it too
      # @param environment [String] by default RAILS_ENV or RACK_ENV, or development
      # @yield [findings, env] instead of the log
      def initialize(app, authorize: nil, logger: nil, json_lines: nil, repeats: 2, min_ms: 0, slow_ms: 500, evidence: EVIDENCE,
                     environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development", &report)
        @app = app
        @authorize = authorize || ->(_env) { environment != "production" }
        @logger = logger
        @json_lines = json_lines
        @verdicts = KnownVerdicts.new(repeats: Integer(repeats), min_ns: (min_ms * 1_000_000).to_i)
        @slow_ns = slow_ms && (slow_ms * 1_000_000).to_i
        @evidence = evidence.is_a?(Evidence::Sampled) ? evidence : Evidence::Sampled.new(evidence)
        @report = report
        @off = Castellan.off?
        Instrument.subscribe
      end

      # @param env [Hash] of Rack
      # @return [Array] the response of the application
      def call(env)
        return @app.call(env) if @off || !@authorize.call(env)

        watch(env)
      end

      private

      def watch(env)
        Instrument.attach
        use = @evidence.begin
        tally = findings = nil
        status, headers, body = within(use) do
          recording = Tally.recording(@slow_ns)
          tally = recording.observer
          WatchedRequest.call(@app, env, recording) { report(findings = all_findings(tally, use, env), env) }
        end
        [status, with_header(headers, findings || findings_of(tally, env)), body]
      end

      # Runs the block in a recording of an observer, if there is one.
      def within(use, &block) = use ? Recording.open(use, &block) : yield

      def all_findings(tally, use, env)
        findings = findings_of(tally, env)
        use ? findings + proven(use, tally, env) : findings
      end

      def findings_of(tally, env)
        return NONE if tally.no_repeats?
        raise tally.failure if tally.failure

        @verdicts.findings(tally)
      rescue StandardError => error
        log(env, "Castellan's detector failed and is silent for this request: #{error.full_message(highlight: false)}")
        []
      end

      # @return [Array<Finding>] what this request has made certain
      def proven(use, tally, env)
        @evidence.news(@evidence.finish(use, tally))
      rescue StandardError => error
        log(env, "Castellan could not see what was loaded in vain: #{error.full_message(highlight: false)}")
        []
      end

      def with_header(headers, findings)
        findings.empty? ? headers : headers.merge(HEADER => Report.header(findings))
      end

      def report(findings, env)
        return if findings.empty?

        write_lines(findings, env) if @json_lines
        return @report.call(findings, env) if @report

        log(env, "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}: #{Report.text(findings)}")
      rescue StandardError => error
        log(env, "Castellan could not report its findings: #{error.full_message(highlight: false)}")
      end

      # One write for a request, so that the lines of two processes do not mix.
      def write_lines(findings, env)
        lines = Report.json_lines(findings, method: env["REQUEST_METHOD"], path: env["PATH_INFO"])
        File.open(@json_lines, "a") { |file| file.write(lines) }
      end

      def log(env, text)
        logger = @logger || env["rack.logger"]
        logger ? logger.warn(text) : env["rack.errors"]&.puts(text)
      end
    end
  end
end
