# frozen_string_literal: true

require "securerandom"
require "stringio"

module Castellan
  module Profile
    # Profiles authorised requests of any Rack application and serves the page that shows them.
    #
    #   use Castellan::Profile::Middleware                                                        # development, on this machine
    #   use Castellan::Profile::Middleware, secret: ENV.fetch("CASTELLAN_SECRET")                 # production, with a signed token
    #   use Castellan::Profile::Middleware, authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }   # or as the application says
    #
    # `Token.new(secret).sign(3_600)` makes a token for an hour: it goes into the header Castellan-Token, or into a link,
    # `/castellan?castellan_token=…`, which lets a browser in.
    #
    # An authorised request is recorded to its SQL; `?profile=memory`, `cpu`, `wall`, `objects`, or the header `Castellan-Profile`, go
    # deeper ({Depth}). Its response is the application's, with a header more, Server-Timing. Who is not authorised gets nothing more:
    # no header, and for the page a 404: the application's own, which is asked for the path as by a GET, because another verb might
    # change something; or ours where it has none. Put it outside of what should be measured. With CASTELLAN=off it is not there.
    class Middleware
      LINK_SECONDS = 8 * 3_600
      BROKEN = [500, { "content-type" => "text/plain", "cache-control" => "no-store" }.freeze,
                ["The page of profiles failed; the log says why.\n"].freeze].freeze
      NOT_FOUND = [404, { "content-type" => "text/plain", "cache-control" => "no-store" }.freeze, ["Not Found\n"].freeze].freeze
      private_constant :BROKEN, :NOT_FOUND

      # @return [Results]
      attr_reader :results
      # @return [String] where the page is
      attr_reader :path

      # @param app [#call]
      # @param authorize [#call, nil] asked with the Rack environment; instead of a keyword it may be the block
      # @param secret [String, nil] of signed tokens; by default CASTELLAN_SECRET, and in development a new one at each boot
      # @param path [String] where the page is
      # @param store [Object, nil] see {Store}; by default this process' memory; the workers of a machine share a
      #   {Store::DirectoryStore}
      # @param ttl [Numeric] seconds that results are kept
      # @param filter [Array] parameters whose values are not kept, see {Redaction}
      # @param headers [Array<String>] request headers to keep besides {Redaction::HEADERS}
      # @param aliases [Boolean] whether `pp=` of rack-mini-profiler is understood, see {Depth}
      # @param literals [Boolean] whether statements are kept with the values in them
      # @param logger [#warn, nil] by default what the server offers
      # @param environment [String, nil] by default RAILS_ENV or RACK_ENV
      # @param linger [Numeric] seconds for which it listens on for the next profile, see {Listening}; by default 5 where a server is
      # @param evidence [#findings, nil] what was loaded eagerly for nothing in many requests, for the page: a {Detect::Evidence::Sampled},
      #   given to {Detect::Middleware} too, or `Castellan::Detect.production(…).evidence`
      # @param mount [String] where the application is mounted, for that link: "/api"
      # @param announce [#call, nil] told of the signed link at boot in development; by default written to the standard error
      def initialize(app, authorize: nil, secret: nil, path: "/castellan", store: nil, ttl: 86_400, filter: [], headers: [], aliases: false,
                     literals: false, logger: nil, environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"],
                     linger: environment.nil? || environment == "test" ? 0 : 5, evidence: nil,
                     mount: "", announce: method(:warn), &block)
        @app = app
        @path = checked_path(path)
        @inside = "#{@path}/"
        @store = store || Castellan::Store::MemoryStore.new
        @logger = logger
        @results = Results.new(@store, ttl: ttl, log: ->(text) { log(nil, "Castellan: #{text}") })
        @authorization = Authorization.new(authorize: authorize || block, secret: secret || default_secret(environment),
                                           environment: environment)
        @traffic = Traffic.new
        @aliases = aliases
        @literals = literals
        @linger_ns = (linger * 1_000_000_000).to_i
        @verdicts = Detect::KnownVerdicts.new
        @evidence = checked_evidence(evidence)
        @settings = Exchange::Settings.new(results: @results, redaction: Redaction.new(filter: filter, headers: headers),
                                           log: method(:log))
        announce_link(announce, mount) if environment == "development" && announce && !Castellan.off?
      end

      # @param env [Hash] of Rack
      # @return [Array] the response of the application, or the page
      def call(env)
        path = env["PATH_INFO"].to_s
        return page(env) if path.start_with?(@path) && (path.size == @path.size || path.start_with?(@inside)) && !Castellan.off?

        @traffic.enter
        begin
          authorized?(env) ? profile(env) : plain(env)
        ensure
          @traffic.leave
        end
      end

      # @param path [String] below {path}, or itself
      # @param seconds [Integer] for which it is good
      # @return [String] a link that lets whoever has it in
      # @raise [ConfigurationError] without a secret
      def link(path = @path, seconds: LINK_SECONDS)
        token = @authorization.token or raise ConfigurationError, "signed links need secret: or CASTELLAN_SECRET"

        "#{path}#{path.include?("?") ? "&" : "?"}#{Authorization::COOKIE}=#{token.sign(seconds)}"
      end

      private

      def authorized?(env)
        @authorization.allows?(env) && !Castellan.off?
      rescue StandardError => error
        log(env, "Castellan's profiler could not ask who is authorised, so nobody is: #{error.full_message(highlight: false)}")
        false
      end

      def plain(env)
        Listening.rest if Listening.lingering?
        @app.call(env)
      end

      def profile(env)
        session = open_session(env)
        session ? Exchange.new(env, session, @settings).call(@app) : @app.call(env)
      end

      # @return [Session, nil] nil when nothing should, or can, be recorded
      def open_session(env)
        depth = Depth.of(env, aliases: @aliases)
        return unless depth.name

        Session.new(depth: depth.name, notes: depth.notes, traffic: @traffic, literals: @literals, linger_ns: @linger_ns,
                    verdicts: @verdicts)
      rescue StandardError => error
        log(env, "Castellan's profiler could not begin: #{error.full_message(highlight: false)}")
        nil
      end

      def page(env)
        token = @authorization.linked(env)
        return let_in(env, token) if token

        authorized?(env) ? shown(env) : closed(env)
      end

      # As if there were no page, so that nobody can tell: what the application says of a path that it does not know.
      def closed(env)
        status, _headers, body = response = passed(harmless(env))
        return response if status.to_i == 404

        body.close if body.respond_to?(:close)
        not_found(env)
      end

      # A GET for the same path, with nothing in its body.
      def harmless(env)
        return env if %w[GET HEAD].include?(env["REQUEST_METHOD"])

        env.merge("REQUEST_METHOD" => "GET", "rack.input" => StringIO.new.set_encoding(Encoding::BINARY))
           .except("CONTENT_LENGTH", "CONTENT_TYPE", "HTTP_TRANSFER_ENCODING")
      end

      # Other requests that are profiled meanwhile overlap with it.
      def passed(env)
        @traffic.enter
        plain(env)
      ensure
        @traffic.leave
      end

      def not_found(env)
        status, headers, body = NOT_FOUND
        [status, headers.dup, env["REQUEST_METHOD"] == "HEAD" ? [] : body.dup]
      end

      def shown(env)
        @page ||= Page.new(store: @results, path: @path, share: (method(:share) if @authorization.token), evidence: method(:evidence))
        @page.call(env)
      rescue StandardError => error
        log(env, "Castellan's page of profiles failed: #{error.full_message(highlight: false)}")
        BROKEN.map(&:dup)
      end

      # @return [Array<Finding>] of many requests
      def evidence
        @evidence ? @evidence.findings : []
      rescue StandardError => error
        log(nil, "Castellan's page of profiles could not see what was loaded in vain: #{error.full_message(highlight: false)}")
        []
      end

      # Who was let in by a token passes on that one, which ends when it ends: no token begets another.
      def share(env, path)
        shown = @authorization.shown(env)
        shown ? "#{path}?#{Authorization::COOKIE}=#{shown}" : link(path)
      end

      # A link becomes a cookie at once, so that the token stays out of histories, logs and what is shared by accident.
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

        raise ConfigurationError, "path: must begin with a slash and not end with one, like \"/castellan\", got #{path.inspect}"
      end

      def checked_evidence(evidence)
        return evidence if evidence.nil? || evidence.respond_to?(:findings)

        raise ConfigurationError, "evidence: must answer findings, as a Castellan::Detect::Evidence::Sampled does, got #{evidence.inspect}"
      end

      # In development the processes that share a store share its secret, so that a link is good for each of them.
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

      def log(env, text)
        logger = @logger || env&.[]("rack.logger")
        return logger.warn(text) if logger

        errors = env&.[]("rack.errors")
        errors ? errors.puts(text) : warn(text)
      rescue StandardError
        nil # a log that fails must not change the response
      end
    end
  end
end
