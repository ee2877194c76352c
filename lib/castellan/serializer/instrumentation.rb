# frozen_string_literal: true

require "active_support"
require "active_support/notifications"

module Castellan
  module Serializer
    # Notifies ActiveSupport::Notifications of each document, under the event name of jsonapi-serializer.
    #
    #   class UserSerializer
    #     include Castellan::Serializer
    #     include Castellan::Serializer::Instrumentation
    #   end
    #
    #   ActiveSupport::Notifications.subscribe("render.jsonapi-serializer.serializable_hash") { |event| event.payload[:name] }
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
