# frozen_string_literal: true

require "securerandom"

module Castellan
  module Profile
    # Profiles authorized requests of a Rack application and serves the page that shows them.
    #
    #   use Castellan::Profile::Middleware                                        # in development, for localhost
    #   use Castellan::Profile::Middleware, secret: ENV.fetch("CASTELLAN_SECRET")  # in production, with signed tokens
    #   use Castellan::Profile::Middleware, authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }
    #
    # `Token.new(secret).sign(3_600)` returns a token for an hour. Send it in the header Castellan-Token, or
    # open `/castellan?castellan_token=…` in a browser, which stores it in a cookie. To record more than SQL,
    # add `?profile=memory`, `cpu`, `wall` or `objects`, or the header `Castellan-Profile` ({Depth}). The
    # response gets the header Server-Timing.
    #
    # Unauthorized requests pass through unchanged, also those for the path of the page. Middlewares are
    # measured only if they come after this one. `CASTELLAN=off` disables it.
    class Middleware
      LINK_SECONDS = 8 * 3_600
      BROKEN = [500, { "content-type" => "text/plain", "cache-control" => "no-store" }.freeze,
                ["The page of profiles failed; see the log.\n"].freeze].freeze
      private_constant :BROKEN

      # @return [Results]
      attr_reader :results
      # @return [String] path of the page
      attr_reader :path

      # @param app [#call] Rack application
      # @param authorize [#call, nil] receives the Rack environment; or pass a block
      # @param secret [String, nil] signs tokens; by default CASTELLAN_SECRET, or in development a random one
      # @param path [String] path of the page
      # @param store [Object, nil] see {Store}; by default a {Store::MemoryStore}, which only this process can
      #   read; pass a {Store::DirectoryStore} to share profiles between the processes of a machine
      # @param ttl [Numeric] seconds to keep results
      # @param filter [Array] parameters to redact, see {Redaction}
      # @param aliases [Boolean] whether to accept rack-mini-profiler's `pp=`, see {Depth}
      # @param literals [Boolean] whether to keep the literal values in the SQL
      # @param logger [#warn, nil] by default the server's rack.logger if it takes warnings, else rack.errors
      # @param environment [String, nil] by default RAILS_ENV or RACK_ENV
      # @param evidence [#findings, nil] shows unused eager loads of many requests on the page: the
      #   {Detect::Evidence} of a {Detect::Middleware}, or `Castellan::Detect.production(…).evidence`
      # @param mount [String] where the application is mounted ("/api"), for the URL that is printed at boot
      # @param announce [#call, nil] receives the signed URL at boot in development; by default `warn`
      # @raise [ConfigurationError] if an option is invalid
      def initialize(app, authorize: nil, secret: nil, path: "/castellan", store: nil, ttl: 86_400, filter: [], aliases: false,
                     literals: false, logger: nil, environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"], evidence: nil, mount: "",
                     announce: method(:warn), &block)
        @app = app
        @path = checked_path(path)
        @inside = "#{@path}/"
        @store = Castellan::Store.for(store || Castellan::Store::MemoryStore.new)
        @logger = logger
        @results = Results.new(@store, ttl: ttl, log: ->(text) { log(nil, "Castellan: #{text}") })
        @authorization = Authorization.new(authorize: authorize || block, secret: secret || default_secret(environment),
                                           environment: environment)
        @traffic = Traffic.new
        @aliases = aliases
        @literals = literals
        @evidence = checked_evidence(evidence)
        @settings = Exchange::Settings.new(results: @results, redaction: Redaction.new(filter: filter), log: method(:log))
        announce_link(announce, mount) if environment == "development" && announce && !Castellan.off?
      end

      # @param env [Hash] Rack environment
      # @return [Array] the Rack response of the application or of the page
      def call(env)
        path = env["PATH_INFO"].to_s
        inside = path.start_with?(@path) && (path.size == @path.size || path.start_with?(@inside)) && !Castellan.off?
        token = @authorization.linked(env) if inside
        return let_in(env, token) if token

        allowed = authorized?(env)
        return shown(env) if inside && allowed

        @traffic.during { allowed ? profile(env) : @app.call(env) }
      end

      # @param path [String] {path}, or a path below it
      # @param seconds [Integer] until the URL expires
      # @return [String] the path with a signed token; everyone who has the URL is authorized
      # @raise [ConfigurationError] without a secret
      def link(path = @path, seconds: LINK_SECONDS)
        token = @authorization.token or raise ConfigurationError, "signed links need secret: or CASTELLAN_SECRET"

        "#{path}#{path.include?("?") ? "&" : "?"}#{Authorization::COOKIE}=#{token.sign(seconds)}"
      end

      private

      # No block here, because this runs for every request.
      def authorized?(env)
        @authorization.allows?(env) && !Castellan.off?
      rescue StandardError => error
        log(env, "Castellan's profiler could not authorise the request: #{error.full_message(highlight: false)}")
        false
      end

      def profile(env)
        session = guarded(env, "profiler could not begin") do
          # For Castellan.app, which refuses unknown parameters. A middleware in between may change the query string.
          env["castellan.query"] = ->(query) { Depth.without(query.to_s.b, aliases: @aliases) }
          open_session(Depth.of(env, aliases: @aliases))
        end
        session ? Exchange.new(env, session, @settings).call(@app) : @app.call(env)
      end

      # @return [Session, nil] nil if the request must not be recorded
      def open_session(depth)
        return unless depth.name

        Session.new(depth: depth.name, notes: depth.notes, traffic: @traffic, literals: @literals, request: true)
      end

      def shown(env) = guarded(env, "page of profiles failed") { page.call(env) } || BROKEN.map(&:dup)

      def page
        Page.new(store: @results, path: @path, share: (method(:share) if @authorization.token), evidence: method(:evidence))
      end

      def evidence = guarded(nil, "page of profiles could not read the unused eager loads") { @evidence&.findings } || []

      # A visitor with a token shares this token with its expiry. Do not sign a new one: it would extend the
      # access.
      def share(env, path)
        shown = @authorization.shown(env)
        shown ? "#{path}?#{Authorization::COOKIE}=#{shown}" : link(path)
      end

      # Moves the token from the URL to a cookie, to keep it out of browser histories, logs and shared URLs.
      def let_in(env, token)
        secure = "; Secure" if env["rack.url_scheme"] == "https"
        cookie = "#{Authorization::COOKIE}=#{token}; Path=/; HttpOnly; SameSite=Lax#{secure}; Max-Age=#{token.to_i - Clock.now.to_i}"
        never = { "cache-control" => "no-store", "referrer-policy" => "no-referrer" }
        [303, { "location" => without_token(env), "set-cookie" => cookie, **never }, []]
      end

      def without_token(env)
        rest = env["QUERY_STRING"].b.split("&").reject { |part| part.start_with?("#{Authorization::COOKIE}=") }.join("&")
        Page.local("#{EndpointName.path(env)}#{"?#{rest}" unless rest.empty?}")
      end

      def checked_path(path)
        return path.dup.freeze if path.is_a?(String) && path.match?(%r{\A(?:/[\w.-]+)+\z})

        raise ConfigurationError, "path: must begin with a slash and not end with one, such as \"/castellan\", got #{path.inspect}"
      end

      def checked_evidence(evidence)
        return evidence if evidence.nil? || evidence.respond_to?(:findings)

        raise ConfigurationError, "Castellan::Profile::Middleware evidence: must be a Castellan::Detect::Evidence, got " \
                                  "#{OptionCheck.shown(evidence)}"
      end

      # In development, processes that share a store also share its secret, so that each accepts the URLs of
      # the others.
      def default_secret(environment)
        secret = ENV.fetch("CASTELLAN_SECRET", nil)
        return secret if secret || environment != "development"

        key = "castellan:profile:secret"
        @store.write_multi({ key => SecureRandom.hex(32) }, if_absent: true)
        @store.read_multi([key])[key] || SecureRandom.hex(32)
      rescue StoreError
        SecureRandom.hex(32)
      end

      def announce_link(announce, mount)
        from = @authorization.open? ? "From this machine, profiles are at #{mount}#{@path}; from elsewhere" : "Profiles"
        announce.call("Castellan: #{from} at #{mount}#{link} (for #{LINK_SECONDS / 3_600} hours).")
      end

      # @return [Object, nil] nil if the block raised; the error is logged
      def guarded(env, failed)
        yield
      rescue StandardError => error
        log(env, "Castellan's #{failed}: #{error.full_message(highlight: false)}")
        nil
      end

      def log(env, text) = Detect::WatchedRequest.log(@logger, env, text)
    end
  end
end
