# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # The verbs of the requests that a block has Rails answer, so that one that is meant to write is not sent again. Without Rails
      # nobody tells.
      #
      #   Verbs.during { get("/users") }   # => ["GET"]
      module Verbs
        EVENT = "start_processing.action_controller"
        private_constant :EVENT

        module_function

        # @return [Array<String>]
        def during(&block)
          verbs = []
          return verbs.tap(&block) unless defined?(ActiveSupport::Notifications)

          listener = ->(*, payload) { verbs << payload[:method].to_s }
          ActiveSupport::Notifications.subscribed(listener, EVENT) { block.call }
          verbs.uniq
        end
      end
    end
  end
end
