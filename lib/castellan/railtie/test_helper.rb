# frozen_string_literal: true

require "json"

module Castellan
  class Railtie < Rails::Railtie
    # Reads JSON:API responses in tests. Integration tests have it; with RSpec: `config.include Castellan::Railtie::TestHelper,
    # type: :request`.
    #
    #   get "/api/posts", headers: { "Accept" => "application/vnd.api+json" }
    #   assert_equal %w[1 2], jsonapi_response["data"].map { |post| post["id"] }
    module TestHelper
      # @return [Hash] the document of the last response
      # @raise [RuntimeError] if it is none
      def jsonapi_response
        type = response.media_type
        raise "the response is no JSON:API document but #{type.inspect}, status #{response.status}" unless type == HTTP::Negotiation::JSON_API

        JSON.parse(response.body)
      end
    end
  end
end
