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

      # Records a part of the body.
      def record(&block)
        @session.record(&block)
      rescue StandardError, ScriptError => error
        @exception ||= described(error) unless error.equal?(@server_error)
        raise
      end

      # The server raised while it handled a chunk, for example because the client closed the connection, so
      # {#record} does not report the error as the application's.
      def server_failed(error)
        @server_error = error
      end

      # Counts a chunk that is sent.
      def sent(chunk)
        @bytes += chunk.bytesize if @bytes
        return if @finished || (@bytes.to_i <= MOST_BYTES && @session.duration_ns <= MOST_NS)

        @cut = true
        finish(note: format("the response was longer than %d MB or took longer than %d s: recorded until then", MOST_BYTES / 1_000_000,
                            MOST_NS / 1_000_000_000))
      rescue StandardError
        @bytes = nil # the server raises for a chunk that is not a String
      end

      # All chunks were sent at once.
      def sent_all
        finished = @env[FINISHED]
        finished.respond_to?(:<<) ? finished << ->(*) { finish } : finish
      end

      # Closes the session and stores the result. Further calls do nothing.
      # @param bytes [Integer, nil] size of the body; nil if it is unknown
      # @param note [String, nil]
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

        # The work is done if the body is complete before it is sent.
        guarded { @session.end_sampling if body.respond_to?(:to_ary) || body.respond_to?(:to_path) }
        timed = guarded { with_timing(headers) } || headers
        [status, timed, guarded { followed(body) } || body]
      end

      # An Array stays an Array: some servers check the body's class.
      def followed(body)
        @file = body.to_path if body.respond_to?(:to_path)
        return BodyProxy.new(body, self) unless body.instance_of?(Array)

        body.each { |chunk| sent(chunk) }
        sent_all
        body
      end

      # After a full hijack the server gets a response that it does not send. With `rack.hijack` in the
      # headers it does send the status.
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
