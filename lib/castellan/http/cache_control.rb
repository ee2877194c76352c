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
      # @raise [ConfigurationError] for an unknown directive, seconds that are not a number of at least 0, or
      #   `immutable:` without a lifetime
      def initialize(immutable: false, cdn: nil, **seconds)
        unknown = seconds.keys - SECONDS.keys
        refuse(unknown) if unknown.any?
        seconds = checked(seconds)
        check_immutable(immutable, seconds)
        own = seconds.except(:s_maxage)
        @shared = { "cache-control" => text("public", seconds, immutable) }
        @shared["cdn-cache-control"] = text(nil, checked(only(cdn), "cache_control: cdn:"), false) unless cdn.nil?
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
        OptionCheck.check("cache_control:", :cdn, cdn, "a Hash", "{ max_age: 3600 }") { cdn.is_a?(Hash) }
        wrong = cdn.keys - CDN
        wrong.empty? ? cdn : refuse(wrong, "cdn: ", CDN)
      end

      def checked(seconds, where = "cache_control:")
        seconds.to_h do |name, value|
          OptionCheck.check(where, name, value, "seconds, 0 or more", 60) do
            OptionCheck.number?(value) && !value.negative?
          end
          [name, value.to_i]
        end
      end

      def check_immutable(immutable, seconds)
        OptionCheck.check("cache_control:", :immutable, immutable, "true or false", true) { [true, false].include?(immutable) }
        raise ConfigurationError, "cache_control: immutable: needs a lifetime; write for example max_age: 86_400, immutable: true" \
          if immutable && !seconds.key?(:max_age) && !seconds.key?(:s_maxage)
      end

      def refuse(names, where = "", known = SECONDS.keys + %i[immutable cdn])
        raise ConfigurationError, "cache_control: #{where}#{names.map(&:inspect).join(", ")} is not known; write #{known.join(", ")}"
      end
    end
  end
end
