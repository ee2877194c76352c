# frozen_string_literal: true

require "digest/sha2"

module Castellan
  module Serializer
    # Adds the class, the fields and the `params` to the cache namespace of a record.
    #
    #   RecordCache.options(UserSerializer, { namespace: "api" }, [:email], [], {})
    #   # => { namespace: "api-UserSerializer-fieldset:email" }
    #
    # Caches nothing for a class without a name, or if blocks read `params` with values other than strings,
    # symbols, numbers, booleans, nil, and arrays and hashes of these.
    module RecordCache
      LONGEST = 120
      private_constant :LONGEST

      class << self
        # @return [Hash, nil] nil if nothing may be cached
        def options(serializer, options, fieldset, included, params)
          cached = (serializer.relationships_to_serialize || {}).each_value.select(&:cached)
          reads_params = reads_params?(serializer, cached)
          return if serializer.name.nil? || (reads_params && !plain?(params))

          # Among cached relationships, only lazy ones change when their records are included.
          lazy = included & cached.select(&:lazy_load_data).map(&:name)
          text = [("fieldset:#{fieldset.join(",")}" if fieldset), ("included:#{lazy.join(",")}" if lazy.any?),
                  ("params:#{params.inspect}" if reads_params)].compact.join("-")
          text = Digest::SHA256.hexdigest(text) if text.bytesize > LONGEST
          { **options, namespace: [namespace(serializer, options), serializer.name, *(text unless text.empty?)].join("-") }
        end

        private

        # Defaults to the store's own namespace.
        def namespace(serializer, options)
          store = serializer.cache_store_instance
          own = store.options[:namespace] if store.respond_to?(:options) && store.options.is_a?(Hash)
          given = options[:namespace] || own || "jsonapi-serializer"
          given.respond_to?(:call) ? given.call : given
        end

        def reads_params?(serializer, cached)
          [*serializer.attributes_to_serialize&.values, *serializer.data_links&.values, *cached].any?(&:params?) ||
            Serializer.takes_params?(serializer.record_id) || serializer.method(:id_from_record).owner != ClassMethods
        end

        def plain?(value)
          case value
          when String, Symbol, Numeric, true, false, nil then true
          when Array then value.all? { |element| plain?(element) }
          when Hash then plain?(value.to_a)
          end
        end
      end
    end
  end
end
