# frozen_string_literal: true

require "json"

module Castellan
  module Serve
    # Builds a Rack response with a JSON:API error document for an invalid request.
    #
    #   ErrorDocument.response(404, "there is no user 7")
    #
    # Errors of the application are raised instead, so that the outer middleware reports them.
    module ErrorDocument
      TITLES = { 401 => "Unauthorized", 404 => "Not found", 405 => "Method not allowed", 412 => "Precondition failed" }.freeze
      # Vary for 406; for 503 the seconds after which a client may try again.
      HEADERS = { 406 => { "vary" => "accept" }, 503 => { "retry-after" => "1" } }.freeze
      # Their messages name a host or a database, and not what the server, or a pooler, has answered.
      VAGUE = %w[ActiveRecord::DatabaseConnectionError ActiveRecord::NoDatabaseError].freeze
      private_constant :TITLES, :HEADERS, :VAGUE

      module_function

      # @return [Array(Integer, Hash, Array<String>)] Rack's response
      def response(status, detail, headers = {})
        build(status, [{ "status" => status.to_s, "title" => TITLES.fetch(status), "detail" => detail }], headers)
      end

      # @param methods [Array<String>] those that are allowed
      # @param further [String, nil] added to the detail
      # @return [Array(Integer, Hash, Array<String>)] Rack's response
      def not_allowed(methods = App::ALLOWED, further = nil)
        list = methods.join(", ")
        response(405, "only #{list} are answered here#{further}", "allow" => list)
      end

      # @param error [BadRequest]
      # @return [Array(Integer, Hash, Array<String>)] Rack's response
      def of(error)
        build(error.status, error.errors, HEADERS.fetch(error.status, {}).merge(error.headers))
      end

      # Writes the reason of a 503 to `rack.errors`.
      # @param env [Hash] Rack's environment
      # @param error [Exception] of the database
      def log_unavailable(env, error)
        reason = (VAGUE.include?(error.class.name) && error.cause) || error
        env["rack.errors"]&.puts("castellan: 503, because the database does not answer: #{error.class}: #{reason.message.lines.first}")
      end

      def build(status, errors, headers)
        body = JSON.generate("errors" => errors)
        fields = { "content-type" => Document::MEDIA_TYPES[:json_api], "content-length" => body.bytesize.to_s, "cache-control" => "no-store" }
        [status, fields.merge(headers), [body]]
      end
      private_class_method :build
    end
  end
end
