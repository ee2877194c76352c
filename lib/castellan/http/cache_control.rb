# frozen_string_literal: true

module Castellan
  module HTTP
    # Writes the Cache-Control field of a response (RFC 9111 §5.2.2, RFC 5861, RFC 8246), and refuses what contradicts itself.
    #
    #   CacheControl.build(public: true, max_age: 60, stale_while_revalidate: 30) # => "public, max-age=60, stale-while-revalidate=30"
    #   CacheControl.build(private: true, no_cache: true)                          # => "private, no-cache"
    #   CacheControl.build(no_store: true)                                         # => "no-store"
    #
    # All ages are whole seconds. Built once at definition, not per request. It does not read requests' fields.
    module CacheControl
      SECONDS = { max_age: "max-age", s_maxage: "s-maxage", stale_while_revalidate: "stale-while-revalidate",
                  stale_if_error: "stale-if-error" }.freeze
      FLAGS = { public: "public", private: "private", no_cache: "no-cache", no_store: "no-store", no_transform: "no-transform",
                must_revalidate: "must-revalidate", proxy_revalidate: "proxy-revalidate", must_understand: "must-understand",
                immutable: "immutable" }.freeze
      private_constant :SECONDS, :FLAGS

      module_function

      # @param directives [Hash] `public:`, `private:`, `no_cache:`, `no_store:`, `no_transform:`, `must_revalidate:`,
      #   `proxy_revalidate:`, `must_understand:`, `immutable:` (true or false); `max_age:`, `s_maxage:`,
      #   `stale_while_revalidate:`, `stale_if_error:` (seconds)
      # @return [String] frozen
      # @raise [ConfigurationError] for an unknown directive, a bad age, or directives that contradict one another
      def build(**directives)
        given = directives.reject { |_, value| value.nil? || value == false }
        check(given)
        flags = FLAGS.filter_map { |name, text| text if given.key?(name) }
        ages = SECONDS.filter_map { |name, text| "#{text}=#{seconds(name, given[name])}" if given.key?(name) }
        (flags + ages).join(", ").freeze
      end

      def check(given)
        unknown = given.keys - FLAGS.keys - SECONDS.keys
        raise ConfigurationError, "Cache-Control: no directive #{unknown.first.inspect}; there are #{names}" if unknown.any?

        refuse(given, %i[public private], "a response is for everybody or for one; say one of them")
        refuse(given, %i[private s_maxage], "s-maxage is for shared caches, which keep nothing private; use max_age:")
        refuse(given, %i[no_store max_age], "what is not stored has no age; leave one out")
        refuse(given, %i[no_store s_maxage], "what is not stored has no age; leave one out")
      end

      def refuse(given, pair, reason)
        raise ConfigurationError, "Cache-Control: #{pair.join(': and ')}: together: #{reason}" if pair.all? { |name| given.key?(name) }
      end

      def seconds(name, value)
        seconds = Integer(value)
        return seconds unless seconds.negative?

        raise ConfigurationError, "Cache-Control: #{name}: must be 0 or more seconds, got #{value.inspect}"
      rescue ArgumentError, TypeError
        raise ConfigurationError, "Cache-Control: #{name}: must be whole seconds, got #{value.inspect}"
      end

      def names
        (FLAGS.keys + SECONDS.keys).join(", ")
      end
      private_class_method :check, :refuse, :seconds, :names
    end
  end
end
