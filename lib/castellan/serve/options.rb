# frozen_string_literal: true

module Castellan
  module Serve
    # The declarations of {App}'s block about other things than resources.
    #
    #   Castellan.app {
    #     resource PostResource
    #     idempotency store: Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"])
    #   }
    module Options
      # @return [Idempotency, nil]
      # @return [OpenApi, nil]
      # @return [Health, nil]
      # @return [AccessLog, nil]
      # @return [Tracing, nil]
      attr_reader :once, :description, :probes, :log, :tracing

      # Accepts Idempotency-Key with POST, see {Idempotency}. Needs `authenticate` before it.
      def idempotency(**options, &namespace)
        refuse("idempotency needs authenticate before it, because each viewer has keys of its own") unless authentication

        @once = Idempotency.new(**options, &namespace)
      end

      # Describes the application in OpenAPI 3.1 at `/openapi.json`, see {OpenApi}.
      # @param options `title:`, `version:` of the API, `at:`, the path
      def openapi(**options)
        @description = OpenApi.new(**options)
      end

      # Answers `/up` and `/ready`, see {Health}.
      # @param options `up:` and `ready:`, the paths
      def health(**options)
        @probes = Health.new(**options)
      end

      # Writes a line of JSON for each request, see {AccessLog}.
      def access_log(output = $stdout, **options)
        @log = AccessLog.new(output, **options)
      end

      # Reports requests to OpenTelemetry, see {Tracing}.
      def trace
        @tracing = Tracing.new
      end
    end
  end
end
