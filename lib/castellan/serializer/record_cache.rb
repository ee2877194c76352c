# frozen_string_literal: true

require "digest"

module Castellan
  module Serializer
    # Builds the cache namespace of a record's object: that of jsonapi-serializer with the fields, and besides the class and the `params`
    # that blocks read.
    #
    #   RecordCache.options(UserSerializer, { namespace: "api" }, [:email], [], {})
    #   # => { namespace: "api-UserSerializer-fieldset:email" }
    #
    # Values of `params` that have no text of their own (a connection, a Proc) cannot be a key, and neither can a class without a
    # name: then nothing is kept. Where no namespace is given, it is the store's own, in which another application's records are not.
    module RecordCache
      NAMESPACE = "jsonapi-serializer"
      LONGEST = 120
      private_constant :NAMESPACE, :LONGEST

      class << self
        # @return [Hash, nil] nil when nothing may be kept
        def options(serializer, options, fieldset, included, params)
          return unless serializer.name

          parts = [fieldset&.then { |names| "fieldset:#{names.join(",")}" }, lazy(serializer, included)]
          parts << params_of(params) if serializer_reads_params?(serializer)
          return if parts.include?(false)

          { **options, namespace: [namespace(serializer, options), serializer.name, short(parts.compact)].compact.join("-") }
        end

        # @return [Object] Rails.cache
        # @raise [ConfigurationError]
        def of_rails
          return ::Rails.cache if defined?(::Rails) && ::Rails.respond_to?(:cache) && ::Rails.cache

          raise ConfigurationError, "cache_options enabled: true means Rails.cache, which is not there; write cache_options store: …"
        end

        private

        def namespace(serializer, options)
          given = options[:namespace] || of_store(serializer.cache_store_instance) || NAMESPACE
          given.respond_to?(:call) ? given.call : given
        end

        def of_store(store)
          store.options[:namespace] if store.respond_to?(:options) && store.options.is_a?(Hash)
        end

        def short(parts)
          return if parts.empty?

          text = parts.join("-")
          text.bytesize > LONGEST ? Digest::SHA256.hexdigest(text) : text
        end

        # Only these of the kept relationships look different when their records are included.
        def lazy(serializer, included)
          relationships = (serializer.relationships_to_serialize || {}).values.select { |one| one.cached && one.lazy_load_data }
          names = relationships.map(&:name) & included
          "included:#{names.join(",")}" if names.any?
        end

        def serializer_reads_params?(serializer)
          members = [*serializer.attributes_to_serialize&.values, *serializer.data_links&.values]
          kept = (serializer.relationships_to_serialize || {}).values.select(&:cached)
          (members + kept).any?(&:params?) || two_arguments?(serializer.record_id) || id_by_its_own_way?(serializer)
        end

        def id_by_its_own_way?(serializer)
          serializer.method(:id_from_record).owner != ClassMethods
        end

        def two_arguments?(block)
          block.is_a?(Proc) && block.arity >= 0 && block.parameters.size > 1
        end

        def params_of(params)
          text = text_of(params)
          text && "params:#{Digest::SHA256.hexdigest(text)[0, 32]}"
        end

        def text_of(value)
          case value
          when String, Symbol, Numeric, true, false, nil then "#{value.class}:#{value.inspect}"
          when Array then list(value.map { |element| text_of(element) })
          when Hash then list(value.map { |key, element| pair(text_of(key), text_of(element)) }.sort_by(&:to_s))
          else text_of_record(value)
          end
        end

        def list(texts)
          texts.include?(false) ? false : "[#{texts.join("\0")}]"
        end

        def pair(key, value)
          key && value && "#{key}=#{value}"
        end

        def text_of_record(value)
          return false if !value.respond_to?(:cache_key_with_version) || (value.respond_to?(:new_record?) && value.new_record?)

          "#{value.class}:#{value.cache_key_with_version}"
        end
      end
    end
  end
end
