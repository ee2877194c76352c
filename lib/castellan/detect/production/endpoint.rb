# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # The name of what was asked, the same for all its records and without what is personal.
      #
      #   Endpoint.of(env)   # => "GET users#show" in Rails, "GET /users/:id" in Sinatra and elsewhere
      #
      # A router's own name is best (Rails, Sinatra). Of a path, every part that holds a digit, an @, a % or is long is taken for an id,
      # but for versions such as `v2`.
      module Endpoint
        ID = %r{(?<=/)(?!v\d+(?:/|\z))(?:[^/]*[\d@%][^/]*|[^/]{33,})(?=/|\z)}
        LONGEST = 200
        private_constant :ID

        # @param env [Hash] of Rack, after the request, when the router has left its name there
        # @return [String]
        def self.of(env)
          return env["sinatra.route"] if env["sinatra.route"]

          parameters = env["action_dispatch.request.path_parameters"]
          name = "#{parameters[:controller]}##{parameters[:action]}" if parameters && parameters[:controller]
          "#{env["REQUEST_METHOD"]} #{name || "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}".scrub.gsub(ID, ":id")}"[0, LONGEST]
        end
      end
    end
  end
end
