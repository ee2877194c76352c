# frozen_string_literal: true

module Castellan
  module Profile
    # Records one profiled request, adds Server-Timing, and stores the result after the body is sent.
    #
    #   Exchange.new(env, session, settings).call(app)   # => the response, with Server-Timing
    #
    # Logs errors of the profiler and leaves the response unchanged. Stops recording an endless body after
    # MOST_BYTES or MOST_NS and adds a note to the result.
    class Exchange
      MOST_BYTES = 100_000_000
      MOST_NS = 60_000_000_000
      FINISHED = "rack.response_finished"
      private_constant :FINISHED

      # The settings of a middleware, which all of its exchanges share.
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
        # Read before the call, because a router moves parts of PATH_INFO to SCRIPT_NAME.
        @request = guarded { request } || {}
      end

      # @param app [#call] Rack application
      # @return [Array] Rack response
      def call(app)
        response = @session.record { app.call(@env) }
        answered = true
        guarded { respond(*response) } || response.tap { finish(bytes: nil) } # the server raises for an invalid response
      ensure
        unless answered
          @exception = described($!)
          finish(bytes: nil)
        end
      end

      def record(&block)
        @session.record(&block)
      rescue StandardError, ScriptError => error
        @exception ||= described(error) unless error.equal?(@server_error)
        raise
      end

      # The server raised while it handled a chunk, for example because the client closed the connection.
      # {#record} must not report this as an error of the application.
      def server_failed(error)
        @server_error = error
      end

      # @return [Boolean] whether the body is made while it is sent although it has `to_ary`
      def lazy? = LazyBody.in?(@env)

      def sent(chunk)
        @bytes += chunk.bytesize if @bytes
        return if @finished || (@bytes.to_i <= MOST_BYTES && @session.duration_ns <= MOST_NS)

        @cut = true
        finish(note: format("the response was longer than %d MB or took longer than %d s: recorded until then", MOST_BYTES / 1_000_000,
                            MOST_NS / 1_000_000_000))
      rescue StandardError
        @bytes = nil # the server raises for a chunk that is not a String
      end

      # The server received all chunks at once.
      def sent_all
        finished = @env[FINISHED]
        finished.respond_to?(:<<) ? finished << ->(*) { finish } : finish
      end

      # Closes the session and stores the result. Only the first call has an effect.
      # @param bytes [Integer, nil] the size of the body; nil if unknown
      # @param note [String, nil] a note for the result
      def finish(bytes: @bytes, note: nil)
        return if @finished

        @finished = true
        @bytes = bytes
        @notes << note if note
        guarded { @session.close }
        guarded { @settings.results.add(@session.finish(**members)) }
      end

      private

      def respond(status, headers, body)
        @status = status
        return hijacked(status, headers, body) if status.to_i.negative? || @env.key?("rack.hijack_io") || headers.key?("rack.hijack")

        # The application has finished if the body is complete.
        guarded { @session.end_sampling if body.respond_to?(:to_path) || (body.respond_to?(:to_ary) && !lazy?) }
        timed = guarded { with_timing(headers) } || headers
        [status, timed, guarded { followed(body) } || body]
      end

      # Keeps an Array an Array, because some servers check the class of the body.
      def followed(body)
        @file = body.to_path if body.respond_to?(:to_path)
        return BodyProxy.new(body, self) unless body.instance_of?(Array)

        body.each { |chunk| sent(chunk) }
        sent_all
        body
      end

      # After a full hijack, the server does not send the response. With `rack.hijack` in the headers it sends
      # the status.
      def hijacked(status, headers, body)
        @status = nil unless headers.key?("rack.hijack")
        timed = guarded { with_timing(headers) } || headers
        finish(bytes: nil, note: "the socket was taken over: recorded until then")
        [status, timed, body]
      end

      def with_timing(headers)
        recorder = @session.recorder
        text = ServerTiming.of(@session.parts, total_ns: @session.duration_ns, queries: recorder.totals[:queries],
                                               repeated: recorder.repeated, looks: recorder.looks.map { |look| look.first(2) },
                                               id: @session.id, room: ServerTiming.room(headers))
        ServerTiming.added(headers, text)
      end

      def request
        redaction = @settings.redaction
        { method: Redaction.text(@env["REQUEST_METHOD"].to_s), path: Redaction.text(EndpointName.path(@env)),
          query: redaction.query(@env["QUERY_STRING"]), headers: redaction.headers(@env) }
      end

      def members
        @bytes = File.size?(@file) if @file && @bytes&.zero? # the server sends the file by its path
        { **@request, **routed, status: @status, response_bytes: @bytes, notes: @notes,
                                exception: @exception || described(@env["action_dispatch.exception"]),
                                truncated: { queries: @session.recorder.left_out, bytes: @cut == true } }
      end

      # The path and the endpoint, with secret route parameters redacted.
      def routed
        parameters = EndpointName.parameters(@env, @request[:path].to_s)
        known = { path: @request[:path], endpoint: EndpointName.of(@env) }.compact
        known.transform_values { |text| @settings.redaction.path(text, parameters) }
      end

      # Without the message, which may quote a parameter or the values of a query.
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
