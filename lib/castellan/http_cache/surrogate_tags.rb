# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Reads a response's tags: surrogate keys (Surrogate-Key, xkey, Cache-Tag) and groups (RFC 9875).
    #
    #   SurrogateTags.keys({ "surrogate-key" => "posts post-1" }, "https://example.com")
    #   # => keys of two entries in the store
    #
    # Groups belong to one origin, surrogate keys to all origins.
    module SurrogateTags
      SEPARATORS = { "surrogate-key" => /\s+/, "xkey" => /[\s,]+/, "cache-tag" => /\s*,\s*/ }.freeze
      NONE = [].freeze
      private_constant :SEPARATORS, :NONE

      module_function

      # @param fields [Hash] normalized
      # @param origin [String]
      # @return [Array<String>]
      def keys(fields, origin)
        return NONE unless fields.key?("cache-groups") || SEPARATORS.any? { |name, _| fields.key?(name) }

        (surrogate_keys(fields).map { |name| Storage.tag_key(name) } + groups(fields["cache-groups"], origin)).uniq
      end

      # @param tags [Array<String, Array<String>>] the arguments of {HTTPCache.purge_tags}
      # @return [Array<String>] keys of their entries in the store
      # @raise [ConfigurationError] for an empty tag
      def purged(tags)
        names = tags.flatten.map(&:to_s)
        return names.map { |name| Storage.tag_key(name) } unless names.include?("")

        raise ConfigurationError, "HTTPCache.purge_tags takes tags that are not empty, got #{OptionCheck.shown(tags)}; write for example " \
                                  "HTTPCache.purge_tags(\"post-1\")"
      end

      # @param value [String, Array<String>, nil] Cache-Groups or Cache-Group-Invalidation
      # @return [Array<String>]
      def groups(value, origin)
        names = value && StructuredField.list(HeaderFields.combined(value))
        (names || NONE).grep(String).map { |name| Storage.tag_key(name, origin) }
      end

      def surrogate_keys(fields)
        SEPARATORS.flat_map { |name, separator| HeaderFields.combined(fields[name]).to_s.strip.split(separator) }.reject(&:empty?).uniq
      end
      private_class_method :surrogate_keys
    end
  end
end
