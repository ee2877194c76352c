# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Notes which streams of ActionController::Live end because their action raises. Rails closes them like all others
    # and deletes their Content-Length, so nothing else shows that their last bytes are missing.
    module LiveStreams
      module_function

      # Call it when the application is loaded.
      def watch
        ActionController::Live::Buffer.prepend(Watched) if defined?(ActionController::Live::Buffer)
      end

      # @param env [Hash] Rack environment, after the body was read
      def failed?(env)
        stream = env["action_controller.instance"]&.response&.stream
        stream.is_a?(Watched) && stream.ended_by_error?
      end

      # Prepended to ActionController::Live::Buffer.
      module Watched
        # Actions close their stream in `ensure`, and Rails does so in `rescue`.
        def close
          @ended_by_error = true if $!
          super
        end

        def ended_by_error? = @ended_by_error || false
      end
    end
  end
end
