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
      attr_reader :once

      # Accepts Idempotency-Key with POST, see {Idempotency}. Needs `authenticate` before it.
      def idempotency(**options, &namespace)
        refuse("idempotency needs authenticate before it, because each viewer has keys of its own") unless authentication

        @once = Idempotency.new(**options, &namespace)
      end
    end
  end
end
