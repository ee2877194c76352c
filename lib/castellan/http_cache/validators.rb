# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Compares the validators of a response with those of a stored one (RFC 9111 §4.3.4, §4.3.5; RFC 9110 §8.8).
    #
    #   Validators.same?({ "etag" => 'W/"a"' }, stored)     # => true, if the stored tag is "a" or W/"a"
    #   Validators.strong?({ "etag" => '"a"' }, stored)     # => true, if the stored tag is "a"
    module Validators
      module_function

      # @param fields [Hash] of a 304 to a request with the stored validators
      # @param stored [StoredResponse]
      # @return [Boolean] whether it validates the stored response; true without any validator. A weak date does not
      #   validate a response without the strong tag of the 304: the content may have changed within the second
      def same?(fields, stored)
        tag = HeaderFields.first(fields["etag"])
        return same_tag?(tag, stored.etag) if tag && stored.etag

        modified = HeaderFields.first(fields["last-modified"])
        return tag.nil? if modified.nil? || stored.last_modified.nil?

        modified == stored.last_modified && (tag.nil? || tag.start_with?("W/") || strong_date?(modified, stored))
      end

      # @param fields [Hash] of a 304
      # @param stored [StoredResponse]
      # @return [Boolean] whether both have the same strong validator
      def strong?(fields, stored)
        tag = HeaderFields.first(fields["etag"])
        return tag == stored.etag && !tag.start_with?("W/") if tag

        modified = HeaderFields.first(fields["last-modified"])
        stored.etag.nil? && modified == stored.last_modified && strong_date?(modified, stored)
      end

      # @param fields [Hash]
      # @return [Boolean] whether there is any validator
      def present?(fields) = fields.key?("etag") || fields.key?("last-modified")

      # @param fields [Hash] of a response to HEAD
      # @param stored [StoredResponse]
      # @return [Boolean] whether the stored content is still that of the response
      def same_content?(fields, stored)
        return false if fields.key?("etag") && HeaderFields.first(fields["etag"]) != stored.etag
        return false if fields.key?("last-modified") && HeaderFields.first(fields["last-modified"]) != stored.last_modified

        length = HeaderFields.first(fields["content-length"])
        length.nil? || length.to_i == stored.size
      end

      # A strong tag validates only a response with the same strong tag.
      def same_tag?(tag, etag)
        tag.start_with?("W/") ? tag.delete_prefix("W/") == etag.delete_prefix("W/") : tag == etag
      end

      # RFC 9110 §8.8.2.2: Last-Modified is strong if the response was sent at least a second later.
      def strong_date?(modified, stored)
        date = HTTPDate.parse(modified) or return false
        stored.date - date >= 1
      end
      private_class_method :same_tag?, :strong_date?
    end
  end
end
