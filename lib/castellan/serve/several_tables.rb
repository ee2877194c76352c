# frozen_string_literal: true

module Castellan
  module Serve
    # Refuses requests other than lists to a collection of several tables. Frozen.
    #
    #   SeveralTables.new(endpoint, app).call(env, nil, "7")   # => Rack's response, 404
    #
    # Its records are read and changed at the URLs of their types, which the error document lists.
    class SeveralTables
      # @param endpoint [Endpoint] of the collection
      # @param app [App] finds the collections of its types
      def initialize(endpoint, app)
        @endpoint = endpoint
        @app = app
        freeze
      end

      # @return [Array] Rack's response: 405 to changes, 404 below the collection
      def call(env, _viewer, id = nil, *)
        return ErrorDocument.response(404, "there is nothing at this path#{elsewhere(env, "read")}") if id

        ErrorDocument.not_allowed(App::ALLOWED, elsewhere(env, "change"))
      end

      private

      def elsewhere(env, verb)
        places = @endpoint.resource.definition.types.filter_map do |type|
          endpoint = @app.endpoint_of(type.type)
          "#{type.type} at #{endpoint.location(env)}" if endpoint
        end
        ": #{verb} #{places.join(", ")}" if places.any?
      end
    end
  end
end
