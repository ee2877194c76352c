# frozen_string_literal: true

module Castellan
  module Profile
    # Profiles authorised requests and serves the page that shows them.
    #
    #   use Castellan::Profile::Middleware, authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }, path: "/castellan"
    class Middleware
      # @param app [#call]
      # @param authorize [#call] asked with the Rack environment
      # @param path [String] where the page is
      # @param store [Object, nil] see {Store}
      def initialize(app, authorize: ->(_env) { false }, path: "/castellan", store: nil)
        @app = app
        @authorize = authorize
        @path = path
        @results = Results.new(store || Castellan::Store::MemoryStore.new)
      end

      # @param env [Hash] of Rack
      # @return [Array] the response of the application
      def call(env)
        return @app.call(env) unless env["PATH_INFO"].start_with?(@path)
        return [404, { "content-type" => "text/plain" }, ["Not Found"]] unless @authorize.call(env)

        Page.new(store: @results, path: @path).call(env)
      end
    end
  end
end
