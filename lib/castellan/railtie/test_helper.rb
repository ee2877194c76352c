# frozen_string_literal: true

require "json"

module Castellan
  class Railtie < Rails::Railtie
    # Reads JSON:API responses in tests.
    #
    #   get "/api/posts", headers: { "Accept" => "application/vnd.api+json" }
    #   assert_equal %w[1 2], jsonapi_response["data"].map { |post| post["id"] }
    #
    # Integration tests include it. For RSpec: `config.include Castellan::Railtie::TestHelper, type:
    # :request`.
    module TestHelper
      # @return [Hash] the JSON:API document of the last response
      # @raise [RuntimeError] if the response is not a JSON:API document
      def jsonapi_response
        type = response.media_type
        raise "the response is no JSON:API document but #{type.inspect}, status #{response.status}" unless type == HTTP::Negotiation::JSON_API

        JSON.parse(response.body, allow_duplicate_key: true)
      end
    end
  end
end
