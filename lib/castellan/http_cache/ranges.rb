# frozen_string_literal: true

require "securerandom"

module Castellan
  class HTTPCache
    # Answers a Range request from stored content (RFC 9110 §14).
    #
    #   Ranges.parse("bytes=0-4,-2", 10)   # => [[0, 5], [8, 2]]: offset and size
    #   Ranges.parse("bytes=20-", 10)      # => []: 416
    #   Ranges.parse("lines=1-2", 10)      # => nil: the field is ignored
    #
    # Ignores a field with many or overlapping ranges, which would cost more than the whole content (§14.2,
    # "Apache Killer", CVE-2011-3192).
    module Ranges
      MOST = 32
      SPEC = /\A(?:(?<first>\d{1,40})-(?<last>\d{1,40})?|-(?<suffix>\d{1,40}))\z/
      private_constant :MOST, :SPEC

      module_function

      # @param value [String] Range field
      # @param size [Integer] bytes
      # @return [Array<(Integer, Integer)>, nil] satisfiable ranges; nil if the field is ignored, also for
      #   empty content
      def parse(value, size)
        return if size.zero?

        specs = HeaderFields.bytes(value)[/\A\s*bytes\s*=(.*)\z/i, 1] or return
        return if specs.count(",") >= MOST

        specs = specs.split(",").map(&:strip).reject(&:empty?)
        ranges = specs.map { |spec| range(spec, size) || (return nil) }
        return if specs.empty? || ranges.sum(&:last) > size

        ranges.reject { |_, length| length.zero? }
      end

      # @param fields [Hash] of the stored response; becomes those of the answer
      # @param stored [StoredResponse]
      # @param ranges [Array] see {parse}
      # @return [Array(Integer, String)] status and content
      def answer(fields, stored, ranges)
        size = stored.size
        return unsatisfiable(fields, size) if ranges.empty?

        HeaderFields::DIGESTS.each { |name| fields.delete(name) }
        return several(fields, stored.content, ranges) if ranges.size > 1

        offset, length = ranges.first
        fields["content-range"] = content_range(offset, length, size)
        fields["content-length"] = length.to_s
        [206, stored.content.byteslice(offset - stored.offset, length)]
      end

      # @param env [Hash] of the client's request
      # @param stored [StoredResponse] an incomplete one
      # @return [Boolean] whether the request is for one range that it contains
      def within?(env, stored)
        range = env["HTTP_RANGE"]
        return false unless range && ClientConditions.range?(env, stored)

        offset, length = Ranges.parse(range, stored.size)&.then { |ranges| ranges.first if ranges.size == 1 }
        !offset.nil? && offset >= stored.offset && offset + length <= stored.offset + stored.content.bytesize
      end

      # @return [String] Content-Range
      def content_range(offset, length, size)
        "bytes #{offset}-#{offset + length - 1}/#{size}"
      end

      # @return [Array(Integer, Integer), nil] offset and size: 0 if the range cannot be satisfied; nil if it
      #   is invalid
      def range(spec, size)
        match = SPEC.match(spec) or return
        if match[:suffix]
          length = [match[:suffix].to_i, size].min
          return [size - length, length]
        end

        first = match[:first].to_i
        last = match[:last] ? match[:last].to_i : size - 1
        return if match[:last] && last < first

        [first, [[last, size - 1].min - first + 1, 0].max]
      end

      # Removes freshness and validators of the content: with them, another cache could store the 416.
      def unsatisfiable(fields, size)
        [*HeaderFields::OF_CONTENT, "expires", "etag", "last-modified"].each { |name| fields.delete(name) }
        fields.delete_if { |name, _| name.end_with?("-cache-control") }
        fields["cache-control"] = "no-store"
        fields["content-range"] = "bytes */#{size}"
        fields["content-length"] = "0"
        [416, ""]
      end

      def several(fields, content, ranges)
        boundary = SecureRandom.hex(16)
        type = HeaderFields.first(fields["content-type"])
        parts = ranges.map do |offset, length|
          "--#{boundary}\r\n#{"content-type: #{type}\r\n" if type}content-range: " \
          "#{content_range(offset, length, content.bytesize)}\r\n\r\n".b << content.byteslice(offset, length) << "\r\n"
        end
        body = parts.join << "--#{boundary}--\r\n"
        fields.delete("content-range") # RFC 9110 §15.3.7.2
        fields["content-type"] = "multipart/byteranges; boundary=#{boundary}"
        fields["content-length"] = body.bytesize.to_s
        [206, body]
      end
      private_class_method :range, :unsatisfiable, :several
    end
  end
end
