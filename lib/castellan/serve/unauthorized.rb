# frozen_string_literal: true

module Castellan
  module Serve
    # Reports a token that is not valid: 401 with a WWW-Authenticate field (RFC 6750, section 3).
    class Unauthorized < BadRequest
      # @param detail [String] for the client
      # @param challenge [String] `Bearer realm="api"`
      def initialize(detail, challenge)
        super(detail, status: 401, title: "Unauthorized", header: "Authorization",
                      headers: { "www-authenticate" => %(#{challenge}, error="invalid_token", error_description="#{detail}") })
      end
    end
  end
end
