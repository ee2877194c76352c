# frozen_string_literal: true

require "uri"

module Castellan
  class HTTPCache
    # Invalidates stored responses after an unsafe request (RFC 9111 §4.4, RFC 9875 §2.2.1, §3).
    module Invalidation
      module_function

      # @param storage [Storage]
      # @param request [ClientRequest] of an unsafe or unknown method
      # @param status [Integer]
      # @param fields [Hash] normalized fields of the response
      def call(storage, request, status, fields)
        groups = SurrogateTags.groups(fields["cache-group-invalidation"], request.origin)
        if (200..399).cover?(status)
          stored = storage.find(request).stored
          groups += SurrogateTags.groups(stored.fields["cache-groups"], request.origin) if stored
          storage.invalidate(keys(request, fields))
        end
        storage.invalidate_tags(groups.uniq) if groups.any?
      end

      # Returns only keys of the same origin, so that no origin can delete another one's responses.
      def keys(request, fields)
        linked = %w[location content-location].filter_map { |name| key(request, HeaderFields.first(fields[name])) }
        [request.key, *linked].uniq
      end

      def key(request, reference)
        return if reference.nil? || reference.empty? || !reference.ascii_only?

        key = ClientRequest.key(resolve(request, reference))
        key if key.start_with?("#{ClientRequest.key("#{request.origin}/").delete_suffix("/")}/")
      rescue URI::Error, ConfigurationError
        nil
      end

      # Avoids URI.join for simple paths: it rejects a base with characters that servers and applications
      # accept.
      def resolve(request, reference)
        path = reference.start_with?("/") && !reference.start_with?("//") && !reference.include?("/.")
        path ? "#{request.origin}#{reference}" : URI.join(request.url, reference).to_s
      end
      private_class_method :keys, :key, :resolve
    end
  end
end
