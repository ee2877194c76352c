# frozen_string_literal: true

module Castellan
  module Profile
    # Records notifications of ActionView, serializers and ActiveSupport caches while a profile runs.
    #
    #   ViewEvents.subscribe    # call ViewEvents.unsubscribe once for each
    #
    # Subscribes only during profiles, so unprofiled requests cost nothing. Without ActiveSupport it does
    # nothing.
    module ViewEvents
      EVENTS = /\A(?:render_(?:template|partial|collection|layout)\.action_view|render\.[a-z_]+|process_action\.action_controller|
                    cache_(?:read|read_multi|write|write_multi)\.active_support)\z/x
      LOCK = Mutex.new
      private_constant :LOCK
      @subscriptions = 0

      class << self
        def subscribe
          return unless defined?(ActiveSupport::Notifications.monotonic_subscribe)

          LOCK.synchronize do
            @subscriptions += 1
            @subscriber ||= ActiveSupport::Notifications.monotonic_subscribe(EVENTS) { |*event| tell(*event) }
          end
        end

        def unsubscribe
          LOCK.synchronize do
            next if @subscriptions.zero? || (@subscriptions -= 1).positive?

            ActiveSupport::Notifications.unsubscribe(@subscriber)
            @subscriber = nil
          end
        end

        private

        # ActiveSupport raises errors of subscribers in the application, hence the rescue.
        def tell(name, started, finished, _id, payload)
          recording = Recording.current
          return unless recording&.watches_spans?

          start_ns = (started * 1e9).to_i
          hear(recording, name, payload, start_ns, (finished * 1e9).to_i - start_ns)
        rescue StandardError
          nil
        end

        def hear(recording, name, payload, started_ns, duration_ns)
          case name
          when "process_action.action_controller" then action(recording, payload, started_ns, duration_ns)
          when /\Acache_/ then look(recording, name, payload, started_ns, duration_ns)
          else recording.notify(:span, :render, text(name, payload), started_ns, duration_ns)
          end
        end

        # `render json:` has no event; the action measures it, in milliseconds and without its SQL.
        def action(recording, payload, started_ns, duration_ns)
          view_ns = (payload[:view_runtime].to_f * 1e6).to_i
          name = "#{payload[:controller]}##{payload[:action]}"
          recording.notify(:span, :view, name, started_ns + duration_ns - view_ns, view_ns) if view_ns.positive?
        end

        # The block of `fetch` is the application's time, not the cache's; `fetch` notifies its read as
        # cache_read.
        def look(recording, name, payload, started_ns, duration_ns)
          case name
          when /\Acache_read\./ then recording.notify(:cache, :rails, payload[:hit] ? :hit : :miss, started_ns, duration_ns)
          when /\Acache_read_multi/ then recording.notify(:cache, :rails, several(payload), started_ns, duration_ns)
          when /\Acache_write/ then recording.notify(:cache, :rails, :write, started_ns, duration_ns)
          end
        end

        def several(payload)
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
