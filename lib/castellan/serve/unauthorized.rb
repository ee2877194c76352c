# frozen_string_literal: true

module Castellan
  module Serve
    # Rejects an invalid token: 401 with a WWW-Authenticate field (RFC 6750, section 3).
    #
    #   raise Unauthorized.new("the token has expired", 'Bearer realm="api"')
    class Unauthorized < BadRequest
      # @param detail [String] the reason, for the client
      # @param challenge [String] such as `Bearer realm="api"`
      def initialize(detail, challenge)
        super(detail, status: 401, title: "Unauthorized", header: "Authorization",
                      headers: { "www-authenticate" => %(#{challenge}, error="invalid_token", error_description="#{detail}") })
      end
    end
  end
end
