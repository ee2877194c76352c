# frozen_string_literal: true

module Castellan
  module Serve
    # Reports each request as an OpenTelemetry span with child spans for its phases. Frozen.
    #
    #   Castellan.app {
    #     trace                 # after OpenTelemetry::SDK.configure
    #     resource PostResource
    #   }
    #
    # The child spans are authentication and the response; the latter contains plan (the query is checked),
    # version (the tables' version is read), cache, select and encode. `Castellan.cache.fetch` is a span
    # everywhere in the process. The name of the request span is the route (`GET /posts/{id}`), without client
    # values.
    class Tracing
      # The key in Rack's environment that marks traced requests.
      TRACED = "castellan.traced"
      METHODS = %w[GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT].freeze
      OTHER = %w[HTTP _OTHER].freeze # OpenTelemetry's span name and attribute for a method that a client made up
      private_constant :METHODS, :OTHER

      # @raise [ConfigurationError] if the gem is not loaded
      def initialize
        unless defined?(::OpenTelemetry)
          raise ConfigurationError, %(trace: OpenTelemetry is not loaded; add gem "opentelemetry-sdk" to the Gemfile and configure it first)
        end

        @tracer = ::OpenTelemetry.tracer_provider.tracer("castellan", VERSION)
        Castellan.tracing = freeze
      end

      # @param env [Hash] Rack's environment
      # @yieldreturn [Array] Rack's response
      # @return [Array] the response
      def call(env)
        method = env["REQUEST_METHOD"]
        verb, method = METHODS.include?(method) ? [method, method] : OTHER
        env[TRACED] = true
        in_span(verb, { "http.request.method" => method }) do |span|
          response = Recording.open(Phases.new(@tracer)) { yield }
        ensure
          finish(span, verb, env["castellan.route"], response&.first)
        end
      end

      # @param name [String] of the phase
      # @yieldreturn [Object]
      # @return [Object] the value of the block
      def phase(name)
        in_span("castellan.#{name}") { yield }
      end

      # Called by `Castellan.cache.fetch`.
      # @yieldreturn [Object]
      # @return [Object] the value of the block
      def fetch(&block)
        watched = Recording.current&.watches_spans?
        phase("fetch") { watched ? yield : Recording.open(Phases.new(@tracer), &block) }
      end

      # Turns the events of a recording, which have already ended, into spans.
      class Phases
        NAMES = { plan: "castellan.plan", version: "castellan.version", select: "castellan.select", render: "castellan.encode" }.freeze
        private_constant :NAMES

        def initialize(tracer)
          @tracer = tracer
        end

        # Ignored, because the driver's own instrumentation reports statements.
        def query(*) = nil

        # Called by {Recording.span}.
        def span(kind, _name, started_ns, duration_ns)
          name = NAMES[kind]
          report(name, started_ns, duration_ns) if name
        end

        # Called by {Recording#notify}.
        def cache(layer, outcome, started_ns, duration_ns, bytes = nil, age = nil)
          attributes = { "castellan.layer" => layer.name, "castellan.outcome" => outcome.name,
                         "castellan.bytes" => bytes, "castellan.age" => age }
          report("castellan.cache", started_ns, duration_ns, attributes.compact)
        end

        private

        def report(name, started_ns, duration_ns, attributes = nil)
          ago = (Clock.monotonic_ns - started_ns) / 1e9 # read first: after a pause in between, the span is still within its parent
          began = Time.now - ago
          @tracer.start_span(name, start_timestamp: began, attributes: attributes).finish(end_timestamp: began + (duration_ns / 1e9))
        end
      end
      private_constant :Phases

      private

      # Unlike the tracer's own in_span, it does not record the message of an exception, which may contain values of the
      # client, and a mistake of the client is no error.
      def in_span(name, attributes = nil)
        span = @tracer.start_span(name, attributes: attributes)
        ::OpenTelemetry::Trace.with_span(span) { yield span }
      rescue BadRequest
        raise
      rescue Exception => error # rubocop:disable Lint/RescueException -- those of Timeout and rack-timeout too
        span&.status = ::OpenTelemetry::Trace::Status.error(error.class.name)
        raise
      ensure
        span&.finish
      end

      # Without a status, an error is being raised.
      def finish(span, verb, route, status)
        if route
          span.name = "#{verb} #{route}"
          span.set_attribute("http.route", route)
        end
        return unless status

        span.set_attribute("http.response.status_code", status)
        span.status = ::OpenTelemetry::Trace::Status.error if status >= 500
      end
    end
  end
end
