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
      attr_reader :once, :description

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
    end
  end
end
