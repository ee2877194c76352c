# frozen_string_literal: true

require "active_support"
require "active_support/notifications"

module Castellan
  module Serializer
    # Emits an event for each document, with the name of jsonapi-serializer's event.
    #
    #   class UserSerializer
    #     include Castellan::Serializer
    #     include Castellan::Serializer::Instrumentation
    #   end
    #
    #   name = "render.jsonapi-serializer.serializable_hash"
    #   ActiveSupport::Notifications.subscribe(name) { |event| event.payload[:name] }
    module Instrumentation
      # The prefix of event names.
      NOTIFICATION_NAMESPACE = "render.jsonapi-serializer."
      EVENT = "#{NOTIFICATION_NAMESPACE}serializable_hash".freeze

      # (see Serializer#serializable_hash)
      def serializable_hash
        ActiveSupport::Notifications.instrument(EVENT, { name: self.class.name, serializer: self.class }) { super }
      end
    end
  end
end
