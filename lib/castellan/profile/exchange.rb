# frozen_string_literal: true

module Castellan
  module Profile
    # Records one profiled request, adds Server-Timing, and stores the result after the body is sent.
    #
    #   Exchange.new(env, session, settings).call(app)   # => the response, with Server-Timing
    #
    # Errors of the profiler are logged and leave the response unchanged. For an endless body, recording stops
    # after MOST_BYTES or MOST_NS, and a note is added to the result.
    class Exchange
      MOST_BYTES = 100_000_000
      MOST_NS = 60_000_000_000
      FINISHED = "rack.response_finished"
      private_constant :FINISHED

      # Shared by all exchanges of a middleware.
      Settings = Struct.new(:results, :redaction, :log, keyword_init: true)

      # @param env [Hash] Rack environment
      # @param session [Session]
      # @param settings [Settings]
      def initialize(env, session, settings)
        @env = env
        @session = session
        @settings = settings
        @bytes = 0
        @notes = []
        # Before the call, because a router moves parts of PATH_INFO to SCRIPT_NAME.
        @asked = guarded { asked } || {}
      end

      # @param app [#call] Rack application
      # @return [Array] Rack response
      def call(app)
        response = @session.record { app.call(@env) }
        answered = true
        guarded { respond(*response) } || unreadable(response)
      ensure
        unless answered
          @exception = described($!)
          @bytes = nil
          finish
        end
      end

      # Records a part of the body.
      def record(&block)
        @session.record(&block)
      rescue StandardError, ScriptError => error
        @exception ||= described(error) unless error.equal?(@refusal)
        raise
      end

      # The server raised while it handled a chunk, for example because the client closed the connection. Such
      # an error is not the application's, so {#record} does not report it.
      def refused(error)
        @refusal = error
      end

      def sent(chunk)
        @bytes += chunk.bytesize if @bytes
        give_up if @bytes.to_i > MOST_BYTES || (!@finished && @session.duration_ns > MOST_NS)
      rescue StandardError
        @bytes = nil # the server raises for a chunk that is not a String
      end

      def sent_all
        finished = @env[FINISHED]
        finished.respond_to?(:<<) ? finished << ->(*) { finish } : finish
      end

      def streamed
        @bytes = nil
        @notes << "the body wrote to a stream: its size is not known"
        finish
      end

      # Closes the session and stores the result. Further calls do nothing.
      def finish
        return if @finished

        @finished = true
        guarded { @session.close }
        guarded { @settings.results.add(@session.finish(**members)) }
      end

      private

      def respond(status, headers, body)
        @status = status
        return hijacked(status, headers, body) if hijacked?(status, headers)

        guarded { @session.end_sampling if complete?(body) }
        timed = guarded { with_timing(headers) } || headers
        [status, timed, guarded { followed(body) } || body]
      end

      # The server raises for an invalid Rack response.
      def unreadable(response)
        @bytes = nil
        finish
        response
      end

      # True if the body is complete before it is sent.
      def complete?(body) = body.respond_to?(:to_ary) || body.respond_to?(:to_path)

      # An Array stays an Array: some servers check the body's class.
      def followed(body)
        @file = body.to_path if body.respond_to?(:to_path)
        return Body.new(body, self) unless body.instance_of?(Array)

        body.each { |chunk| sent(chunk) }
        sent_all
        body
      end

      def hijacked?(status, headers)
        status.to_i.negative? || @env.key?("rack.hijack_io") || headers.key?("rack.hijack")
      end

      # After a full hijack the server gets a response that it does not send. With `rack.hijack` in the
      # headers it does send the status.
      def hijacked(status, headers, body)
        @bytes = nil
        @status = nil unless headers.key?("rack.hijack")
        @notes << "the socket was taken over: recorded until then"
        timed = guarded { with_timing(headers) } || headers
        finish
        [status, timed, body]
      end

      def with_timing(headers)
        looks = @session.recorder.looks.map { |layer, outcome| [layer, outcome] }
        text = ServerTiming.of(@session.parts, total_ns: @session.duration_ns, queries: @session.recorder.totals[:queries],
                                               repeated: @session.recorder.repeated, looks: looks, id: @session.id,
                                               room: ServerTiming.room(headers))
        ServerTiming.added(headers, text)
      end

      def give_up
        return if @finished

        @cut = true
        @notes << format("the response was longer than %d MB or took longer than %d s: recorded until then", MOST_BYTES / 1_000_000,
                         MOST_NS / 1_000_000_000)
        finish
      end

      def asked
        redaction = @settings.redaction
        { method: Redaction.text(@env["REQUEST_METHOD"].to_s), path: Redaction.text(EndpointName.path(@env)),
          query: redaction.query(@env["QUERY_STRING"]), headers: redaction.headers(@env) }
      end

      def members
        raised = @exception || described(@env["action_dispatch.exception"])
        @bytes = File.size?(@file) if @file && @bytes&.zero? # the server sends the file by its path
        { **@asked, **routed, status: @status, response_bytes: @bytes, exception: raised, notes: @notes,
                              truncated: { queries: @session.recorder.left_out, bytes: @cut == true } }
      end

      # The path and the endpoint, with secret route parameters redacted.
      def routed
        parameters = EndpointName.parameters(@env, @asked[:path].to_s)
        known = { path: @asked[:path], endpoint: EndpointName.of(@env) }.compact
        known.transform_values { |text| @settings.redaction.path(text, parameters) }
      end

      # Omits the message: it may quote a parameter or a statement with its values.
      def described(error)
        return unless error.is_a?(Exception)

        line = error.backtrace_locations&.find { |location| CallSite.application?(location.path.to_s) }
        line ? "#{error.class} at #{line.path.delete_prefix("#{CallSite.root}/")}:#{line.lineno}" : error.class.to_s
      end

      def guarded
        yield
      rescue StandardError, ScriptError, SystemStackError => error
        @settings.log.call(@env, "Castellan's profiler failed and is silent for this request: #{error.full_message(highlight: false)}")
        nil
      end
    end
  end
end
