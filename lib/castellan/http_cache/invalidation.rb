# frozen_string_literal: true

require "uri"

module Castellan
  class HTTPCache
    # Invalidates stored responses after an unsafe request (RFC 9111 §4.4, RFC 9875 §2.2.1, §3).
    module Invalidation
      ABSOLUTE = %r{\Ahttps?://}i
      DOT_SEGMENT = %r{/\.\.?(?:[/?#]|\z)}
      private_constant :ABSOLUTE, :DOT_SEGMENT

      module_function

      # @param storage [Storage]
      # @param request [ClientRequest] of an unsafe or unknown method
      # @param status [Integer]
      # @param fields [Hash] normalized fields of the response
      # @param found [Storage::Found, nil] before the request, if the response may be stored
      # @return [Storage::Found, nil] see {Storage#renew}
      def call(storage, request, status, fields, found: nil)
        groups = SurrogateTags.groups(fields["cache-group-invalidation"], request.origin)
        if (200..399).cover?(status)
          stored = storage.find(request).stored
          groups += SurrogateTags.groups(stored.fields["cache-groups"], request.origin) if stored
          storage.invalidate(linked(request, fields) - [request.key])
          renewed = storage.renew(request.key, found)
        end
        storage.invalidate_tags(groups.uniq) if groups.any?
        renewed
      end

      # @param (see call)
      # @return [Boolean] whether the response is the new state of the requested URI (RFC 9110 §8.7)
      def representation?(request, status, fields)
        reference = HeaderFields.first(fields["content-location"])
        status == 200 && !request.ambiguous? && key(request, reference) == request.key
      end

      # Returns only keys of the same origin, so that no origin can delete another one's responses.
      def linked(request, fields)
        %w[location content-location].filter_map { |name| key(request, HeaderFields.first(fields[name])) }.uniq
      end

      def key(request, reference)
        return if reference.nil? || reference.empty? || !reference.ascii_only?

        key = ClientRequest.key(resolve(request, reference))
        key if key.start_with?("#{ClientRequest.key("#{request.origin}/").delete_suffix("/")}/")
      rescue URI::Error, ConfigurationError
        nil
      end

      # Avoids URI.join where nothing is to be resolved: it rejects characters that servers and applications accept.
      def resolve(request, reference)
        unless reference.match?(DOT_SEGMENT)
          return reference if reference.match?(ABSOLUTE)
          return "#{request.origin}#{reference}" if reference.start_with?("/") && !reference.start_with?("//")
        end
        URI.join(request.url, reference).to_s
      end
      private_class_method :linked, :key, :resolve
    end
  end
end
