# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Reads and combines partial responses (RFC 9111 §3.3, §3.4).
    #
    #   Parts.position({ "content-range" => "bytes 5-9/20" })   # => [5, 5, 20]: offset, size, size of the whole
    #   Parts.combined(stored, fields, "56789")                 # => [206, fields, "0123456789"]
    #
    # A stored part has no gaps: a new part that does not touch it replaces it.
    module Parts
      POSITION = %r{\Abytes (\d{1,15})-(\d{1,15})/(\d{1,15})\z}i
      SEVERAL = %r{\A\s*multipart/byteranges}i
      private_constant :POSITION, :SEVERAL

      module_function

      # @param fields [Hash] normalized
      # @return [Array(Integer, Integer, Integer), nil] nil if Content-Range is absent, invalid or without the
      #   size of the whole, or if the content consists of several parts
      def position(fields)
        return if HeaderFields.first(fields["content-type"])&.match?(SEVERAL)

        match = POSITION.match(HeaderFields.combined(fields["content-range"])) or return
        first, last, size = match.captures.map(&:to_i)
        [first, last - first + 1, size] if first <= last && last < size
      end

      # @param stored [StoredResponse, nil]
      # @param fields [Hash] of a 206 with a {position}
      # @return [Boolean] whether the stored part has the same strong validator, and no gap before the new one
      def touch?(stored, fields)
        return false unless stored&.incomplete? && stored.etag&.start_with?('"') && stored.etag == HeaderFields.first(fields["etag"])

        offset, length, size = position(fields)
        size == stored.size && offset <= stored.offset + stored.content.bytesize && stored.offset <= offset + length
      end

      # @param (see touch?)
      # @param content [String] of the 206
      # @return [Array(Integer, Hash, String)] status, fields and content: of the whole response, if nothing is
      #   missing
      def combined(stored, fields, content)
        offset, _, size = position(fields)
        offset, fields, content = joined(stored, offset, fields, content) if touch?(stored, fields)
        length = content.bytesize
        fields = fields.except("content-range", *HeaderFields::DIGESTS).merge("content-length" => length.to_s)
        return [200, fields, content] if length == size

        [206, fields.merge("content-range" => Ranges.content_range(offset, length, size)), content]
      end

      def joined(stored, offset, fields, content)
        start = [offset, stored.offset].min
        whole = stored.content.byteslice(0, offset - start).b << content
        rest = start + whole.bytesize - stored.offset
        whole << stored.content.byteslice(rest..).b if rest < stored.content.bytesize
        [start, stored.fields.merge(fields), whole.freeze]
      end
      private_class_method :joined
    end
  end
end
