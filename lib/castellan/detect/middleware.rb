# frozen_string_literal: true

module Castellan
  module Detect
    # Reports repeated queries of each request in the log and in the header `castellan-findings`.
    #
    #   use Castellan::Detect::Middleware                                                     # in development
    #   use Castellan::Detect::Middleware, authorize: ->(env) { env["REMOTE_ADDR"] == "127.0.0.1" }   # in production
    #
    # In production it observes only requests that `authorize` allows; to sample traffic, use
    # {Detect.production}. If the body is lazy, or the request raises or times out, findings appear only in
    # the log, because the header is sent before. Errors of the detector are logged and never change a
    # response.
    class Middleware
      include WatchedRequest

      HEADER = "castellan-findings"

      # @param app [#call]
      # @param authorize [#call, nil] receives the Rack environment; by default, all requests except in
      #   production
      # @param logger [#warn, nil] by default `rack.logger` if it takes warnings, else `rack.errors`
      # @param json_lines [String, nil] a file to append findings to as JSON Lines, with the method and path
      #   of the request
      # @param repeats [Integer] the number of queries of the same shape that make a finding
      # @param min_ms [Numeric] the minimum time from the first to the last of them, in milliseconds
      # @param slow_ms [Numeric, nil] report a single query that takes at least this many milliseconds; nil
      #   disables this
      # @param evidence [Numeric, Evidence, false] the share of requests in which to look for unused eager
      #   loads, or the object that the profiler's page uses
      # @param environment [String] by default RAILS_ENV, RACK_ENV or "development"
      # @yield [findings, env] replaces the log
      def initialize(app, authorize: nil, logger: nil, json_lines: nil, repeats: 2, min_ms: 0, slow_ms: 500, evidence: false,
                     environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development", &report)
        @app = app
        @authorize = authorize || ->(_env) { environment != "production" }
        @logger = logger
        @json_lines = json_lines
        @limits = { repeats: Integer(repeats), min_ns: (min_ms * 1_000_000).to_i }
        @slow_ns = slow_ms && (slow_ms * 1_000_000).to_i
        @evidence = evidence.is_a?(Evidence) ? evidence : Evidence.new(evidence)
        @report = report
        @off = Castellan.off?
        Instrument.subscribe
      end

      # @param env [Hash] the Rack environment
      # @return [Array] the response of the application
      def call(env)
        return @app.call(env) if @off || !authorized?(env)

        findings = nil
        (status, headers, body), tally = watch(@app, env) { |all, use| report(findings = findings_of(all, use, env), env) }
        findings ||= findings_of(tally, nil, env)
        [status, findings.empty? ? headers : headers.merge(HEADER => Report.header(findings)), body]
      end

      private

      def authorized?(env)
        @authorize.call(env)
      rescue StandardError, ScriptError, SystemStackError => error
        log(env, "Castellan's detector could not authorise the request: #{error.full_message(highlight: false)}")
        false
      end

      def findings_of(tally, use, env)
        unread = use ? @evidence.news(@evidence.finish(use, tally)) : []
        return unread if tally.no_repeats?
        raise tally.failure if tally.failure

        Verdict.new(tally, **@limits).findings + unread
      rescue StandardError, ScriptError, SystemStackError => error
        log(env, "Castellan's detector failed and is silent for this request: #{error.full_message(highlight: false)}")
        []
      end

      def report(findings, env)
        return if findings.empty?

        write_lines(findings, env) if @json_lines
        return @report.call(findings, env) if @report

        log(env, "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}: #{Report.text(findings)}")
      rescue StandardError, ScriptError, SystemStackError => error
        log(env, "Castellan could not report its findings: #{error.full_message(highlight: false)}")
      end

      # One write per request, so that the lines of several processes do not mix.
      def write_lines(findings, env)
        lines = Report.json_lines(findings, method: env["REQUEST_METHOD"], path: env["PATH_INFO"])
        File.open(@json_lines, "a") { |file| file.write(lines) }
      end
    end
  end
end
