# frozen_string_literal: true

require "delegate"

module Castellan
  module Detect
    # Watches each request for repeated queries: findings go to the log and into the response header
    # `castellan-findings`, never into the body.
    #
    #   use Castellan::Detect::Middleware                                                     # in development
    #   use Castellan::Detect::Middleware, authorize: ->(env) { env["REMOTE_ADDR"] == "127.0.0.1" }   # in production
    #
    # In production nothing is watched unless `authorize` says so for the request. Queries of a body that is made while it
    # is sent are seen too: they are logged when it is closed, after the header has gone. What goes wrong in here is logged
    # and changes no response. For production traffic at large there is {Detect.production}, which samples.
    class Middleware
      HEADER = "castellan-findings"

      # @param app [#call]
      # @param authorize [#call, nil] asked with the Rack environment whether to watch; by default yes, but for production
      # @param logger [#warn, nil] by default what the server offers: `rack.logger`, else `rack.errors`
      # @param environment [String] by default RAILS_ENV or RACK_ENV, or development
      # @yield [findings, env] instead of the log
      def initialize(app, authorize: nil, logger: nil, repeats: 2, min_ms: 0,
                     environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development", &report)
        @app = app
        @authorize = authorize || ->(_env) { environment != "production" }
        @logger = logger
        @limits = { repeats: Integer(repeats), min_ns: (min_ms * 1_000_000).to_i }
        @report = report
        Instrument.subscribe
      end

      # @param env [Hash] of Rack
      # @return [Array] the response of the application
      def call(env)
        return @app.call(env) if Castellan.off? || !@authorize.call(env)

        watch(env)
      end

      private

      def watch(env)
        Instrument.attach
        tally = Tally.new
        recording = Recording.new(tally, Recording.current)
        status, headers, body = Recording.resume(recording) { @app.call(env) }
        return [status, *finished(tally, env, headers, body)] if complete?(body)

        [status, with_header(headers, findings_of(tally, env)), Body.new(body, recording) { report(findings_of(tally, env), env) }]
      end

      # Whether all of the body is there.
      def complete?(body) = body.respond_to?(:to_ary) || body.respond_to?(:to_path)

      def finished(tally, env, headers, body)
        findings = findings_of(tally, env)
        report(findings, env)
        [with_header(headers, findings), body]
      end

      def findings_of(tally, env)
        Verdict.new(tally, **@limits).findings
      rescue StandardError => error
        log(env, "Castellan's detector failed and is silent for this request: #{error.full_message(highlight: false)}")
        []
      end

      def with_header(headers, findings)
        findings.empty? ? headers : headers.merge(HEADER => Report.header(findings))
      end

      def report(findings, env)
        return if findings.empty?
        return @report.call(findings, env) if @report

        log(env, "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}: #{Report.text(findings)}")
      rescue StandardError => error
        log(env, "Castellan could not report its findings: #{error.full_message(highlight: false)}")
      end

      def log(env, text)
        logger = @logger || env["rack.logger"]
        logger ? logger.warn(text) : env["rack.errors"]&.puts(text)
      end

      # A body that is made while it is sent; what it asks the database belongs to its request.
      class Body < SimpleDelegator
        ASKED = %i[each call to_ary to_path].freeze

        def initialize(body, recording, &closed)
          super(body)
          @recording = recording
          @closed = closed
        end

        # The methods below are there only as far as the body has them.
        def respond_to?(name, *)
          ASKED.include?(name) ? __getobj__.respond_to?(name) : super
        end

        def each(&block) = Recording.resume(@recording) { __getobj__.each(&block) }

        def call(stream) = Recording.resume(@recording) { __getobj__.call(stream) }.tap { done }

        def close
          Recording.resume(@recording) { __getobj__.close if __getobj__.respond_to?(:close) }
        ensure
          done
        end

        private

        def done
          closed = @closed
          @closed = nil
          closed&.call
        end
      end
      private_constant :Body
    end
  end
end
