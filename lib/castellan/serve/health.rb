# frozen_string_literal: true

module Castellan
  module Serve
    # Serves `/up` (the process runs) and `/ready` (its databases respond), without authentication. Frozen.
    #
    #   Castellan.app {
    #     health                # Kubernetes: livenessProbe /up, readinessProbe /ready
    #     resource PostResource
    #   }
    #
    # If a database does not respond, `/ready` is a 503 with Retry-After.
    class Health
      FIELDS = { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store" }.freeze
      private_constant :FIELDS

      # @param up [String] the path of the liveness probe
      # @param ready [String] the path of the readiness probe
      def initialize(up: "/up", ready: "/ready")
        @up = up
        @ready = ready
        freeze
      end

      def at?(path)
        [@up, @ready].include?(path)
      end

      # @param env [Hash] Rack's environment
      # @param resources [Enumerable<Class>]
      # @return [Array] Rack's response
      def call(env, resources)
        return ErrorDocument.not_allowed unless App::ALLOWED.include?(env["REQUEST_METHOD"])
        return answer(200, "up") if env["PATH_INFO"] == @up

        databases(resources).each(&:ping)
        answer(200, "ready")
      rescue StandardError => error
        raise unless Write::DatabaseError.unavailable?(error)

        ErrorDocument.log_unavailable(env, error)
        status, fields, body = answer(503, "a database does not answer")
        [status, fields.merge("retry-after" => "1"), body]
      end

      private

      # Skips datasets without a model.
      def databases(resources)
        models = resources.filter_map do |resource|
          Write::Models.for(resource.definition.model)
        rescue ConfigurationError
          nil
        end
        models.each_with_object([]) { |one, found| found << one unless found.any? { |other| other.same_database?(one) } }
      end

      def answer(status, text)
        [status, FIELDS.merge("content-length" => text.bytesize.to_s), [text]]
      end
    end
  end
end
