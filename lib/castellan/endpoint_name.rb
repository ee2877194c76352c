# frozen_string_literal: true

module Castellan
  # Names the endpoint of a request without ids and personal values, so that all records share a name.
  #
  #   EndpointName.of(env)   # => "GET users#show" in Rails, "GET /users/:id" elsewhere
  #
  # Call it after the application, because it prefers the name that the router sets: `castellan.endpoint` in
  # the environment, Rails' controller and action, or Sinatra's route. Otherwise it writes `:id` for each path
  # segment that contains a digit, an @ or a %, or is long, except versions like `v2`.
  module EndpointName
    ID = %r{(?<=/)(?!v\d+(?:/|\z))(?:[^/]*[\d@%][^/]*?|\h{16,}|[^/]{33,}?)(?=/|\.(?:json|jsonapi|ndjson|xml|csv|html?|pdf|txt)\z|\z)}n
    LONGEST = 200
    private_constant :ID, :LONGEST

    module_function

    # @param env [Hash] the Rack environment
    # @return [String] UTF-8, at most 200 characters
    def of(env)
      "#{env["REQUEST_METHOD"].to_s.b} #{route(env).to_s.b}".b.force_encoding(Encoding::UTF_8).scrub("?")[0, LONGEST]
    end

    # @param env [Hash] the Rack environment
    # @return [String] the requested path; binary, because its parts may have different encodings
    def path(env) = "#{env["SCRIPT_NAME"].to_s.b}#{env["PATH_INFO"].to_s.b}".b

    # @param env [Hash] the Rack environment
    # @param path [String] the requested path
    # @return [Hash] the router's path parameters
    def parameters(env, path)
      known = env["action_dispatch.request.path_parameters"]
      return known if known.is_a?(Hash)

      names = env["sinatra.route"].to_s.split("/").reverse
      names.zip(path.split("/").reverse).to_h.select { |name, _value| name.start_with?(":") }
    end

    def route(env)
      env["castellan.endpoint"] || rails(env["action_dispatch.request.path_parameters"]) ||
        env["sinatra.route"]&.sub(/\A[A-Z]+ /, "") || path(env).gsub(ID, ":id")
    end
    private_class_method :route

    def rails(parameters)
      return unless parameters.is_a?(Hash) && parameters[:controller]

      "#{parameters[:controller].to_s.b}##{parameters[:action].to_s.b}"
    end
    private_class_method :rails
  end
end
