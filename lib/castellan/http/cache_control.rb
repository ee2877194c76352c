# frozen_string_literal: true

module Castellan
  module HTTP
    # Builds Cache-Control and CDN-Cache-Control fields from one declaration. Frozen.
    #
    #   policy = CacheControl.new(max_age: 60, s_maxage: 600, stale_while_revalidate: 30)
    #   policy.shared
    #   # => { "cache-control" => "public, max-age=60, s-maxage=600, stale-while-revalidate=30" }
    #   policy.private   # => { "cache-control" => "private, max-age=60, stale-while-revalidate=30" }
    #   CacheControl.new.shared   # => { "cache-control" => "public, no-cache" }
    #
    # See RFC 9111 §5.2.2, RFC 5861, RFC 8246 and RFC 9213.
    class CacheControl
      # Option => directive, in output order.
      SECONDS = { max_age: "max-age", s_maxage: "s-maxage", stale_while_revalidate: "stale-while-revalidate",
                  stale_if_error: "stale-if-error" }.freeze
      CDN = %i[max_age stale_while_revalidate stale_if_error].freeze
      private_constant :SECONDS, :CDN

      # @return [Hash{String => String}] the fields of a response that shared caches may store
      # @return [Hash{String => String}] the fields of a response to one viewer
      attr_reader :shared, :private

      # @param immutable [Boolean] whether clients need not revalidate a fresh response (RFC 8246)
      # @param cdn [Hash, nil] `max_age:`, `stale_while_revalidate:`, `stale_if_error:` for the field
      #   CDN-Cache-Control (RFC 9213)
      # @param seconds [Hash{Symbol => Numeric}] `max_age:`, `s_maxage:`, `stale_while_revalidate:`,
      #   `stale_if_error:`
      # @raise [ConfigurationError] for an unknown directive, or seconds that are not a number of at least 0
      def initialize(immutable: false, cdn: nil, **seconds)
        unknown = seconds.keys - SECONDS.keys
        refuse(unknown) if unknown.any?
        seconds = checked(seconds)
        own = seconds.except(:s_maxage)
        @shared = { "cache-control" => text("public", seconds, immutable) }
        @shared["cdn-cache-control"] = text(nil, checked(only(cdn)), false) if cdn
        @private = { "cache-control" => text("private", own.key?(:max_age) ? own : {}, immutable) }
        @shared.freeze
        @private.freeze
        freeze
      end

      private

      def text(scope, seconds, immutable)
        fresh = seconds.key?(:max_age) || seconds.key?(:s_maxage)
        directives = SECONDS.filter_map { |name, directive| "#{directive}=#{seconds[name]}" if seconds.key?(name) }
        [scope, ("no-cache" unless fresh), *directives, ("immutable" if immutable && fresh)].compact.join(", ").freeze
      end

      def only(cdn)
        wrong = cdn.is_a?(Hash) ? cdn.keys - CDN : [cdn]
        wrong.empty? ? cdn : refuse(wrong, "cdn: ", CDN)
      end

      def checked(seconds)
        seconds.to_h do |name, value|
          raise ConfigurationError, "cache_control: #{name}: must be seconds, 0 or more, got #{value.inspect}" \
            unless value.respond_to?(:to_i) && !value.is_a?(String) && !value.nil? && value.to_i >= 0

          [name, value.to_i]
        end
      end

      def refuse(names, where = "", known = SECONDS.keys + %i[immutable cdn])
        raise ConfigurationError, "cache_control: #{where}#{names.map(&:inspect).join(", ")} is not known; write #{known.join(", ")}"
      end
    end
  end
end
