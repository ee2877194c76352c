# frozen_string_literal: true

module Castellan
  module Serve
    # Defines the declarations of {App}'s block other than resources.
    #
    #   Castellan.app {
    #     resource PostResource
    #     idempotency store: Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"])
    #   }
    module Options
      # @return [Idempotency, nil]
      # @return [OpenApi, nil]
      # @return [Health, nil]
      # @return [AccessLog, nil]
      # @return [Tracing, nil]
      # @return [Pages, nil]
      # @return [Hash, nil] options of {Replicas}
      attr_reader :once, :description, :probes, :log, :tracing, :html, :replication

      # Sets the URL with which links begin, instead of the path where the application is mounted.
      # @param url [String] such as "https://api.example.org/v1"
      def base_url(url)
        surroundings[:base_url] = url
      end

      # Writes the top-level member `jsonapi` into every document: `{"version":"1.1"}`.
      # @param meta [Hash] its meta object
      def jsonapi(**meta)
        surroundings[:jsonapi] = meta
      end

      # Writes the top-level link `self` into every document; for links of records see {Resource.self_links}.
      def self_links
        surroundings[:self_links] = true
      end

      # Writes the top-level link `describedby` into every document.
      # @param url [String] the URL of a description, such as "/openapi.json"
      def described_by(url)
        surroundings[:described_by] = url
      end

      # Accepts query parameters of the application, which `authenticate` finds in `env["castellan.params"]`.
      # Other unknown parameters are refused with 400.
      #
      #   param :locale, in: %w[de en]
      # @param names [Array<Symbol, String>]
      # @param in [Array<String>, nil] the allowed values; nil: any text
      def param(*names, in: nil)
        values = binding.local_variable_get(:in)
        params = surroundings[:params] ||= {}
        names.each { |name| params[name] = values }
      end

      # @return [Frame]
      def frame
        Frame.new(**surroundings)
      end

      # Accepts Idempotency-Key with POST, see {Idempotency}. Declare `authenticate` before it.
      # @raise [ConfigurationError] without `authenticate`
      def idempotency(**options, &namespace)
        refuse("idempotency needs authenticate before it, because each viewer has keys of its own") unless authentication

        @once = Idempotency.new(**options, &namespace)
      end

      # Lists the records of each public document in Surrogate-Key and Cache-Tag, so that proxies purge it
      # after a change.
      # @param purge [Purge]
      def purge(purge)
        surroundings[:purge] = purge
      end

      # Adds Cache-Status (RFC 9211) to responses with cached documents: `Castellan; hit` or
      # `Castellan; fwd=miss; stored`.
      # @param value [Boolean]
      def cache_status(value)
        surroundings[:cache_status] = value
      end

      # Reads from a replica, except for clients that have just written, see {Replicas}.
      # @param cookie [String, nil] the name of a cookie with the version, for browsers
      def replicas(cookie: nil)
        @replication = { cookie: cookie }
      end

      # Serves an OpenAPI 3.1 description at `/openapi.json`, see {OpenApi}.
      # @param options `title:` and `version:` of the API, and its path `at:`
      def openapi(**options)
        @description = OpenApi.new(**options)
      end

      # Serves documents as HTML to browsers, see {Pages}.
      # @param options `title:` of the API
      def pages(**options)
        @html = Pages.new(**options)
      end

      # Serves `/up` and `/ready`, see {Health}.
      # @param options `up:` and `ready:`, the paths
      def health(**options)
        @probes = Health.new(**options)
      end

      # Logs a line of JSON for each request, see {AccessLog}.
      def access_log(output = $stdout, **options)
        @log = AccessLog.new(output, **options)
      end

      # Reports requests to OpenTelemetry, see {Tracing}.
      def trace
        @tracing = Tracing.new
      end

      private

      def surroundings
        @surroundings ||= {}
      end
    end
  end
end
