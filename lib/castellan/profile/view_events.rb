# frozen_string_literal: true

module Castellan
  module Profile
    # Records the notifications of ActionView, serializers and ActiveSupport caches while a profile runs.
    #
    #   ViewEvents.subscribe    # call ViewEvents.unsubscribe as often
    #
    # Does nothing without ActiveSupport.
    module ViewEvents
      EVENTS = /\A(?:render_(?:template|partial|collection|layout)\.action_view|render\.[a-z_]+|process_action\.action_controller|
                    cache_(?:read|read_multi|write|write_multi)\.active_support)\z/x
      LOCK = Mutex.new
      private_constant :LOCK
      @subscriptions = 0

      class << self
        def subscribe
          LOCK.synchronize do
            @subscriptions += 1
            next unless defined?(ActiveSupport::Notifications.monotonic_subscribe)

            @subscriber ||= ActiveSupport::Notifications.monotonic_subscribe(EVENTS) { |*event| record(*event) }
          end
        end

        def unsubscribe
          LOCK.synchronize do
            @subscriptions -= 1
            next if @subscriptions.positive? || @subscriber.nil?

            ActiveSupport::Notifications.unsubscribe(@subscriber)
            @subscriber = nil
          end
        end

        private

        # Rescues errors, because ActiveSupport raises the errors of subscribers in the application.
        def record(name, started, finished, _id, payload)
          recording = Recording.current
          return unless recording&.watches_spans?

          start_ns = (started * 1e9).to_i
          duration_ns = (finished * 1e9).to_i - start_ns
          case name
          when "process_action.action_controller" then action(recording, payload, start_ns + duration_ns)
          when /\Acache_/ then recording.notify(:cache, :rails, outcome(name, payload), start_ns, duration_ns)
          else recording.notify(:span, :render, text(name, payload), start_ns, duration_ns)
          end
        rescue StandardError
          nil
        end

        # `render json:` has no event, but the action measures the views in milliseconds, without their SQL.
        def action(recording, payload, ended_ns)
          view_ns = (payload[:view_runtime].to_f * 1e6).to_i
          name = "#{payload[:controller]}##{payload[:action]}"
          recording.notify(:span, :view, name, ended_ns - view_ns, view_ns) if view_ns.positive?
        end

        # For `fetch`, only the read counts (cache_read), because the block is the application's time.
        def outcome(name, payload)
          return :write if name.start_with?("cache_write")
          return payload[:hit] ? :hit : :miss unless name.start_with?("cache_read_multi")

          hits = Array(payload[:hits]).size
          return :miss if hits.zero?

          hits < Array(payload[:key]).size ? :part : :hit
        end

        def text(name, payload)
          what = payload[:identifier] || payload[:serializer] || payload[:name]
          what ? what.to_s.delete_prefix("#{CallSite.root}/") : name
        end
      end
    end
  end
end
