# frozen_string_literal: true

module Castellan
  module Serve
    # Reports each request as a span of OpenTelemetry, with a span inside for authentication and one for the answer. Frozen.
    #
    #   Castellan.app {
    #     trace                 # after OpenTelemetry::SDK.configure
    #     resource PostResource
    #   }
    #
    # The span has the name of the route (`GET /posts/{id}`) and no values of the client.
    class Tracing
      # @raise [ConfigurationError] if the gem is not loaded
      def initialize
        unless defined?(::OpenTelemetry)
          raise ConfigurationError, %(trace: OpenTelemetry is not loaded; add gem "opentelemetry-sdk" to the Gemfile and configure it first)
        end

        @tracer = ::OpenTelemetry.tracer_provider.tracer("castellan", VERSION)
        freeze
      end

      # @param env [Hash] Rack's environment
      # @yieldreturn [Array] Rack's response
      # @return [Array] the response
      def call(env)
        method = env["REQUEST_METHOD"]
        @tracer.in_span(method, attributes: { "http.request.method" => method }) do |span|
          response = yield
          finish(span, method, env["castellan.route"], response.first)
          response
        end
      end

      # @param name [String] of the phase
      # @yieldreturn [Object]
      # @return [Object] the value of the block
      def phase(name)
        @tracer.in_span("castellan.#{name}") { yield }
      end

      private

      def finish(span, method, route, status)
        if route
          span.name = "#{method} #{route}"
          span.set_attribute("http.route", route)
        end
        span.set_attribute("http.response.status_code", status)
        span.status = ::OpenTelemetry::Trace::Status.error if status >= 500
      end
    end
  end
end
