# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Copies a streamed body while the server sends it, and yields the copy when it is complete.
    class TeedBody
      # @param body [#each]
      # @param limit [Integer] bytes; a longer body is sent without a copy
      # @param length [Integer, nil] bytes, if known: the copy is then yielded before the last byte is sent,
      #   so that a client that has read the response finds it in the cache
      # @yieldparam content [String] binary
      def initialize(body, limit, length, &complete)
        @body = body
        @limit = limit
        @length = length
        @complete = complete
        @copy = String.new
      end

      def each
        @body.each do |chunk|
          copy(chunk)
          complete if @copy && @copy.bytesize == @length
          yield chunk
        end
        complete if @length.nil? || @copy&.bytesize == @length # an empty body has no last byte
      end

      def close
        @body.close if @body.respond_to?(:close)
      end

      private

      def copy(chunk)
        @copy = nil if @copy && @copy.bytesize + chunk.bytesize > (@length || @limit)
        @copy << chunk.b if @copy
      end

      def complete
        content, @copy = @copy, nil
        @complete.call(content) if content
      end
    end
  end
end
