# frozen_string_literal: true

require_relative "../errors"
require_relative "../nearest"

module Castellan
  class Railtie < Rails::Railtie
    # Holds `config.castellan`.
    # Each setter checks its value, so that the backtrace of an error has the line.
    #
    #   Rails.application.configure do                                  # config/initializers/castellan.rb
    #     config.castellan.cache_store = Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]) if ENV["REDIS_URL"]
    #     config.castellan.detection = { sample: 0.1 } if Rails.env.production?
    #   end
    #
    # The settings may also be in config/application.rb and config/environments. They are read once, at boot.
    class Configuration
      TAKERS = { detection: -> { [Rails.env.development? ? Detect::Middleware : Detect::Production] },
                 profile: -> { [Profile::Middleware] }, verify: -> { [Verify::Middleware] },
                 http_cache: -> { [HTTPCache, HTTPCache::CacheOptions] } }.freeze
      private_constant :TAKERS

      # @return [Object, nil] a {Store}, or Rails.cache, for the documents of resources that declare `cache`; nil, the default,
      #   caches nothing
      attr_reader :cache_store
      # @return [String, nil] the revision of the application's code; documents that another revision cached
      #   are not used; nil: {Keeper::Revision}
      attr_reader :revision
      # @return [Hash, false, nil] options of {Detect::Middleware} in development, elsewhere of
      #   {Detect::Production} (`report:` is a callable for its block); false: off; nil, the default: on in
      #   development, off elsewhere
      attr_reader :detection
      # @return [Hash, false, nil] options of {Profile::Middleware}; false: off; nil, the default: on in
      #   development, off elsewhere
      attr_reader :profile
      # @return [Hash, false, nil] options of {Verify::Middleware}, `rate:` and `report:`; false or nil, the
      #   default: off
      attr_reader :verify

      # @return [Hash, Boolean, nil] options of {HTTPCache}, a shared HTTP cache before the router; true: its
      #   default options; false or nil, the default: off
      attr_reader :http_cache

      # @return [Detect::Production, nil] set at boot if `detection` is on outside of development:
      #   `puts config.castellan.detector`
      attr_accessor :detector

      # @return [Array<String>] see {application_gems=}
      def application_gems = CallSite.application_gems

      # @param names [Array<String>] gems whose lines count as lines of the application: `%w[spree_core]`,
      #   `%w[spree*]`
      def application_gems=(names)
        CallSite.application_gems = names
      end

      # @return [Boolean] see {Castellan.together}
      def together = Castellan.together

      # @param value [Boolean] whether the records of a document load each association together
      def together=(value)
        Castellan.together = value
      end

      def cache_store=(store)
        @cache_store = (Store.for(store, "config.castellan.cache_store") unless store.nil?)
      end

      def revision=(text)
        refuse(:revision, text, "a String or nil", "ENV[\"GIT_COMMIT\"]") unless text.nil? || text.is_a?(String)
        @revision = text
      end

      def detection=(options)
        @detection = checked(:detection, options, "{ sample: 0.1 }")
      end

      def profile=(options)
        @profile = checked(:profile, options, "{ secret: ENV[\"CASTELLAN_SECRET\"] }")
      end

      def verify=(options)
        @verify = checked(:verify, options, "{ rate: 0.001, report: ->(difference) { Rails.logger.warn(difference.to_s) } }")
      end

      def http_cache=(options)
        @http_cache = checked(:http_cache, options == true ? {} : options, "{ only: [\"/api\"] }")
        return unless @http_cache && @http_cache.fetch(:store, true).nil?

        raise ConfigurationError, "config.castellan.http_cache has store: nil; Rails.cache is nil until config/initializers are loaded: " \
                                  "set it there, or leave out store: for the memory of each process"
      end

      private

      def checked(key, options, example)
        refuse(key, options, "a Hash of options, or false", example) unless options.nil? || options == false || options.is_a?(Hash)
        named(key, options) if options
        options
      end

      def named(key, options)
        takers = TAKERS.fetch(key).call
        parameters = takers.flat_map { |type| type.instance_method(:initialize).parameters }
        names = parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) }.uniq
        names << :report if takers == [Detect::Production] # its block; that of the middleware takes other values
        wrong = options.keys.find { |name| !names.include?(name) } or return
        where = "; in the environment #{Rails.env}, it takes those of #{takers.first}" if key == :detection
        hint = names.any? { |name| name.name == wrong } ? " (write the Symbol :#{wrong})" : Nearest.hint(wrong, names)
        raise ConfigurationError, "config.castellan.#{key} has no option #{wrong.inspect}#{hint}#{where}"
      end

      def refuse(key, value, type, example)
        raise ConfigurationError, "config.castellan.#{key} must be #{type}, got #{value.inspect}; write for example " \
                                  "config.castellan.#{key} = #{example}"
      end
    end
  end
end
