# frozen_string_literal: true

module Castellan
  module Profile
    # What a request asked, without what differs between two of the same kind.
    #
    #   EndpointName.of(env)   # => "GET users#index" in Rails, "GET /users/:id" elsewhere
    #
    # Asked when the application has answered, because it is the router that knows. Segments that are numbers, UUIDs or long hexadecimals
    # stand for an id; an application that routes by names has as many endpoints as names, and may set `castellan.endpoint` in the
    # environment.
    module EndpointName
      ID = %r{(?<=/)(?:\d+|\h{8}-\h{4}-\h{4}-\h{4}-\h{12}|\h{16,}|[0-9A-HJKMNP-TV-Z]{26})(?=/|\.\w+\z|\z)}
      LONGEST = 200
      private_constant :ID, :LONGEST

      module_function

      # @param env [Hash] of Rack
      # @return [String]
      def of(env)
        Redaction.text("#{env["REQUEST_METHOD"].to_s.b} #{route(env).to_s.b}")[0, LONGEST]
      end

      # @param env [Hash] of Rack
      # @return [String] the path that is asked for, binary: its parts need not have one encoding
      def path(env) = "#{env["SCRIPT_NAME"].to_s.b}#{env["PATH_INFO"].to_s.b}".b

      # @param env [Hash] of Rack
      # @param path [String] as it was asked for
      # @return [Hash] the parameters that the router found in the path
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
end
