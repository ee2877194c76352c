# frozen_string_literal: true

require "json"

module Castellan
  module Serve
    # Writes one line of JSON for each request. Frozen.
    #
    #   access_log $stdout, filter: %i[email]
    #   # {"time":"2026-01-31T…","method":"GET","path":"/posts","query":"filter[email]=[FILTERED]",…}
    #
    # Values of query parameters such as password, token or secret, and of `filter:`, are written as
    # [FILTERED]. Header fields, bodies and viewers are not logged.
    class AccessLog
      # Characters; longer paths are truncated.
      LONGEST = 500
      private_constant :LONGEST

      # @param output [#write, #info, #call] an IO, a Logger, or a callable that takes a Hash
      # @param filter [Array<Symbol, String, Regexp>] parameter names, as Rails' `config.filter_parameters`
      # @raise [ConfigurationError] if the output is none of these
      def initialize(output = $stdout, filter: [])
        @write = if output.respond_to?(:call) then output
                 elsif output.respond_to?(:info) then ->(line) { output.info(JSON.generate(line)) }
                 elsif output.respond_to?(:write) then ->(line) { output.write("#{JSON.generate(line)}\n") }
                 else raise ConfigurationError, "access_log: takes an IO, a Logger or a callable, got #{output.class}"
                 end
        @redaction = Profile::Redaction.new(filter: filter)
        freeze
      end

      # @param env [Hash] Rack's environment
      # @yieldreturn [Array] Rack's response
      # @return [Array] the response
      def call(env)
        started_ns = Clock.monotonic_ns
        response = yield
      ensure
        log(env, response, Clock.monotonic_ns - started_ns)
      end

      private

      # A full disk or a closed pipe must not turn the response of a committed write into an error.
      def log(env, response, duration_ns)
        @write.call(line(env, response, duration_ns))
      rescue StandardError => error
        begin
          env["rack.errors"]&.puts("castellan: the access log has not taken a line: #{error.class}: #{error.message.lines.first}")
        rescue IOError, SystemCallError
          nil
        end
      end

      # Without a response, an error is being raised, for which the outer middleware responds with 500.
      def line(env, response, duration_ns)
        { "time" => Clock.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ"), "method" => shown(env["REQUEST_METHOD"]),
          "path" => shown(env["SCRIPT_NAME"]) + shown(env["PATH_INFO"]), "query" => @redaction.query(env["QUERY_STRING"]),
          "route" => env["castellan.route"], "status" => response ? response[0] : 500,
          "bytes" => response && response[1]["content-length"]&.to_i, "ms" => (duration_ns / 1_000_000.0).round(2),
          "request_id" => env["action_dispatch.request_id"] || env["HTTP_X_REQUEST_ID"]&.then { |id| shown(id) } }.compact
      end

      def shown(text)
        ClientText.shown(text.to_s, LONGEST)
      end
    end
  end
end
