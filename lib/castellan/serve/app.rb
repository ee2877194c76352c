# frozen_string_literal: true

module Castellan
  module Serve
    # Serves resources as JSON:API in a Rack application. Frozen; checks all declarations when it is built.
    #
    #   run Castellan.app {
    #     authenticate { |env| Token.viewer(env["HTTP_AUTHORIZATION"]) }   # nil: 401
    #     resource UserResource
    #     resource PostResource, at: "posts", scope: ->(viewer) { viewer.posts.published }
    #   }
    #
    # Without `authenticate` the viewer is nil and Cache-Control makes documents public. Invalid requests get
    # a 4xx with an error document, an unreachable database 503; other errors are raised. If code is reloaded,
    # build the app in reloaded code.
    class App
      ALLOWED = %w[GET HEAD].freeze

      MOST_SEGMENTS = 3 # id, "relationships", name
      private_constant :MOST_SEGMENTS

      # Collects the declarations of {App}'s block.
      class Builder
        include Options

        # @return [Hash{String => Array}] path => resource, scope and fixed parameters
        # @return [#call, nil] takes Rack's environment and returns the viewer
        # @return [String, nil] the WWW-Authenticate field of a 401
        # @return [String, nil] the path of the Atomic Operations extension
        attr_reader :resources, :authentication, :challenge, :operations_path

        def initialize(&block)
          @resources = {}
          instance_eval(&block)
        end

        # Serves a resource, such as `/users` and `/users/7`.
        # @param resource [Class]
        # @param at [String] the path of the collection; default: the type
        # @param scope [#call, nil] called with the viewer (nil without authentication), returns the relation
        #   or dataset that the viewer may see
        # @param asked parameters that the client cannot change: `include:`, `fields:`, `representation:`,
        #   `format:`
        # @raise [ConfigurationError] if it is no resource, the path is taken or the scope not callable
        def resource(resource, at: nil, scope: nil, **asked)
          unless resource.is_a?(Class) && resource <= Castellan::Resource
            refuse("resource takes a class with Castellan::Resource as superclass, such as UserResource, got #{resource.inspect}")
          end
          path = "/#{at || resource.definition.type}".squeeze("/").chomp("/")
          refuse("the path #{path} is taken by #{@resources[path].first}; name another with at:") if @resources.key?(path)
          refuse("scope: must be callable with the viewer, such as ->(viewer) { viewer.posts }") if scope && !scope.respond_to?(:call)

          @resources[path] = [resource, scope, asked]
        end

        # Accepts POST requests of the Atomic Operations extension, see {Operations}.
        # @param at [String] the path
        def operations(at: "operations")
          @operations_path = "/#{at}".squeeze("/").chomp("/")
        end

        # Finds the viewer of each request.
        # @param challenge [String] the WWW-Authenticate field of a 401 (RFC 9110, section 11.6.1)
        # @param jwt [Hash, nil] options of {Jwt}, to accept JSON Web Tokens; the block then takes the claims
        # @yieldparam env [Hash] Rack's environment
        # @yieldreturn [Object, nil] the viewer; nil or false: 401
        # @raise [ConfigurationError] without a block and jwt:
        def authenticate(challenge: 'Bearer realm="api"', jwt: nil, &block)
          refuse("authenticate needs a block: { |env| the viewer, or nil }") unless block || jwt

          @challenge = challenge
          @authentication = jwt ? Jwt.new(jwt, challenge: challenge, &block) : block
        end

        private

        def refuse(text)
          raise ConfigurationError, text
        end
      end

      def initialize(&block)
        block or raise ConfigurationError, "Castellan.app needs a block that names its resources: Castellan.app { resource UserResource }"
        builder = Builder.new(&block)
        @authentication = builder.authentication
        @challenge = builder.challenge
        @idempotency = builder.once
        @description = builder.description
        @frame = builder.frame
        @probes = builder.probes
        @pages = builder.html
        @tracing = builder.tracing
        @around = [builder.log, builder.tracing].compact.freeze
        open = @authentication.nil? && @around.empty? && @pages.nil? && @frame.own.empty? && builder.replication.nil?
        rows = builder.resources.each_value.filter_map { |resource,| check(resource) }
        @endpoints = builder.resources.to_h do |path, (resource, scope, asked)|
          path = Rack::Utils.escape_path(path) # a type may be "größen"
          [path, Endpoint.new(resource, path: path, scope: scope, asked: asked, authenticated: !@authentication.nil?, frame: @frame)]
        end.freeze
        @paths = @endpoints.transform_keys { |path| Rack::Utils.unescape_path(path) }.freeze
        @keeping = @endpoints.select { |_, endpoint| open && endpoint.keeps? }.freeze
        @replicas = replicas(builder) if builder.replication
        @operations_path = builder.operations_path
        @operations = Operations.new(self, @frame) if @operations_path
        @routes = @endpoints.to_h { |path, endpoint|
          [endpoint, endpoint.several_tables? ? SeveralTables.new(endpoint, self) : Routes.new(endpoint, path)]
        }.compare_by_identity.freeze
        rows.each(&:disconnect_idle)
        freeze
      end

      # @param env [Hash] Rack's environment
      # @return [Array] Rack's response; for an invalid request 4xx with a JSON:API error document
      def call(env)
        # Without `?profile=memory`, which the profiler has read.
        rest = env["castellan.query"]&.call(env["QUERY_STRING"])
        env = env.merge("QUERY_STRING" => rest) if rest
        kept = @keeping[env["PATH_INFO"]]&.kept(env)
        return kept if kept

        response = @pages&.wanted?(env) ? @pages.call(env, self, @frame.prefix(env)) { |asked| answered(asked) } : answered(env)
        response[2] = HTTP::NOTHING if env["REQUEST_METHOD"] == "HEAD"
        response
      rescue StandardError => error
        failed(env, error)
      end

      # @param path [String, nil] nil if the requested path is not valid UTF-8
      # @return [Array, nil] the endpoint, and the path segments after the collection: id, relationship
      def route(path)
        return unless path

        path = path.chomp("/")
        segments = []
        until (endpoint = @paths[path] || (@paths[Rack::Utils.unescape_path(path)] if path.include?("%")))
          return if segments.size == MOST_SEGMENTS

          path, _, segment = path.rpartition("/")
          segment = ClientText.utf8(Rack::Utils.unescape_path(segment))
          return if segment.nil? || segment.empty?

          segments.unshift(segment)
        end
        [endpoint, *segments]
      end

      # Counts what a request reads, for {RateLimit}, without reading it.
      #
      #   use Castellan::RateLimit, limit: 3_000, period: 60, cost: ->(request) { API.cost(request, at: "/api") }
      #
      # @param request [Rack::Request]
      # @param at [String] the path of the mount point, if the middleware is outside of it
      # @return [Integer] for a GET, one for each record type that its plan reads, and one for each hundred
      #   records of its page; 1 for linkage and other requests, and for those that are refused
      def cost(request, at: "")
        return 1 unless ALLOWED.include?(request.request_method)

        endpoint, id, *rest = route(ClientText.utf8(request.path_info.delete_prefix(at)))
        endpoint && rest.size < 2 ? endpoint.cost(request.query_string, id, *rest) : 1
      rescue BadRequest
        1
      end

      # @param type [String]
      # @return [Endpoint, nil] the collection of this type, else that of a resource with `types`
      def endpoint_of(type)
        own = @endpoints.each_value.find do |endpoint|
          endpoint.types.empty? && !endpoint.several_tables? && endpoint.resource.definition.type == type
        end
        own || @endpoints.each_value.filter_map { |endpoint| endpoint.of_type(type) }.first
      end

      # @return [Array<Endpoint>] one for each resource
      def resource_endpoints = @endpoints.values

      # @return [Array<String>] the paths of {Operations} and {OpenApi}, if they are declared
      def other_paths = [@operations_path, @description&.path].compact

      # @return [Purge, nil]
      def purge = @frame.purge

      # Short, because `rails routes` prints it, and without the keys of `authenticate`.
      # @return [String]
      def inspect = "#<#{self.class} #{@endpoints.keys.join(" ")}>"

      private

      # If the database cannot be read, which is the case where an image of the application is built, the resource is
      # checked at its first document.
      # @return [Rows::Adapter, nil] nil if it cannot be read
      def check(resource)
        rows = resource.checked_rows
        [resource.definition, *resource.definition.types].each { |definition| Write.check!(definition) }
        rows
      rescue Castellan::Error => error
        # A generator may be about to write the missing resource.
        raise unless defined?(::Rails::Command::GenerateCommand)

        warn("castellan: #{error.message}")
      rescue StandardError => error
        warn("castellan: #{resource} is checked with its first document, because its table cannot be read: #{error.message.lines.first}")
      end

      def respond(env)
        script_name!(env["SCRIPT_NAME"]) unless env["SCRIPT_NAME"].to_s.empty?
        path = env["PATH_INFO"].to_s
        endpoint, id, *rest = @endpoints[path] || special(path) || route(ClientText.utf8(path))
        return ErrorDocument.response(404, "there is nothing at this path") unless endpoint

        return @probes.call(env, @endpoints.each_value.map(&:resource)) if endpoint.equal?(@probes)

        env["castellan.params"] = @frame.params(env["QUERY_STRING"] || "") unless @frame.own.empty?
        env["castellan.route"] = named_route(endpoint, id, rest) if @around.any?
        viewer = phase("authenticate") { viewer(env) } if @authentication
        return perform(env, viewer, endpoint, id, rest) unless @tracing || @idempotency || @replicas

        phase("answer") { routed(env) { once(env, viewer) { perform(env, viewer, endpoint, id, rest) } } }
      rescue BadRequest => error
        cause = error.cause if error.status == 503
        ErrorDocument.log_unavailable(env, cause) if cause && Write::DatabaseError.unavailable?(cause)
        ErrorDocument.of(error)
      rescue StandardError => error
        failed(env, error)
      end

      # @return [Array] Rack's response if the database is unreachable
      def failed(env, error)
        raise error if error.is_a?(Write::Transaction::Committed) || !Write::DatabaseError.unavailable?(error)

        ErrorDocument.log_unavailable(env, error)
        ErrorDocument.of(Write::DatabaseError.unavailable)
      end

      def answered(env)
        @around.empty? ? respond(env) : observed(env)
      end

      def observed(env)
        @around.reverse.inject(-> { respond(env) }) { |inner, around| -> { around.call(env, &inner) } }.call
      end

      def phase(name)
        @tracing ? @tracing.phase(name) { yield } : yield
      end

      # The block may look the token up in a database, which raises for text that is not UTF-8.
      def viewer(env)
        token = env["HTTP_AUTHORIZATION"]
        known = @authentication.call(env) if token.nil? || ClientText.utf8(token) || @authentication.is_a?(Jwt)
        known || raise(BadRequest.new("a valid token is needed", status: 401, title: "Unauthorized",
                                                                 headers: { "www-authenticate" => @challenge }))
      end

      def replicas(builder)
        Replicas.new(@endpoints.each_value.map { |endpoint| endpoint.resource.definition }, **builder.replication)
      end

      def routed(env, &block)
        @replicas ? @replicas.call(env, &block) : yield
      end

      def once(env, viewer)
        @idempotency && env["REQUEST_METHOD"] == "POST" ? @idempotency.call(env, viewer) { yield } : yield
      end

      # @return [String] the path with placeholders, such as "/posts/{id}/relationships/author"
      def named_route(endpoint, id, rest)
        return @operations_path if endpoint.equal?(@operations)
        return "/" if endpoint.equal?(@pages)
        return endpoint.path unless id

        known = rest.last && endpoint.resource.definition.written_as.any? { |definition| definition.member_named(rest.last) }
        [endpoint.path, "{id}", *rest[0...-1], *(known ? rest.last : ("{relationship}" if rest.any?))].join("/")
      end

      def special(path)
        return @operations if path == @operations_path
        return @probes if @probes&.at?(path)

        return @pages if @pages&.at?(path)

        @description if path == @description&.path
      end

      def perform(env, viewer, endpoint, id, rest)
        return @operations.call(env, viewer) if endpoint.equal?(@operations)
        return describe(env, viewer) if endpoint.equal?(@description)
        return @pages.start(env, @endpoints.each_key.to_h { |path| [path, "#{@frame.prefix(env)}#{path}"] }) if endpoint.equal?(@pages)
        return endpoint.call(env, viewer, id) if rest.empty? && ALLOWED.include?(env["REQUEST_METHOD"]) && !(id && endpoint.several_tables?)

        @routes.fetch(endpoint).call(env, viewer, id, *rest)
      end

      def describe(env, viewer)
        @description.call(env, viewer, @endpoints, operations_path: @operations_path, authenticated: !@authentication.nil?, frame: @frame)
      end

      # Checks SCRIPT_NAME, because links contain it.
      def script_name!(name)
        return if ClientText.utf8(name)

        raise BadRequest.new("the path is not valid UTF-8 text: #{ClientText.shown(name)}", title: "Invalid path")
      end
    end
  end
end
