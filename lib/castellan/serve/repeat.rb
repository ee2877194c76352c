# frozen_string_literal: true

module Castellan
  module Serve
    # Responds like {Hits} to requests that equal an earlier one, in fewer steps. Frozen.
    #
    #   repeat = hits.repeat(env, keeper, request_key)
    #   repeat.call(env, viewer)   # => Rack's response; nil: use Hits
    #
    # Between two requests, the rest of the server evicts this code from the processor's caches. So the time of a
    # hit depends on how much code and memory it uses.
    class Repeat
      # @param headers [Hash{String => String}] of a response, without Content-Length
      def initialize(script_name, keeper, request_key, last, fields, headers)
        @script_name = script_name
        @keeper = keeper
        @memory = keeper.memory
        @key = keeper.stored_key(last.key, fields.coding)
        @request_key = request_key
        @personal = request_key.personal?
        @last = last
        @coding = fields.coding
        @etag = fields.etag
        @headers = headers
        @validators = headers.except("content-type", "content-encoding").freeze
        freeze
      end

      # @param env [Hash] Rack's environment, of a request with the same path, query and Accept-Encoding
      # @param viewer [Object, nil]
      # @return [Array, nil] Rack's response
      def call(env, viewer)
        return unless env["SCRIPT_NAME"] == @script_name && env["HTTP_IF_MATCH"].nil? && Keeper.unobserved?

        found = @request_key.find(:all, viewer)
        return unless found && @last.equal?(found.last)

        @personal ? personal(env["HTTP_IF_NONE_MATCH"], viewer, found) : shared(env["HTTP_IF_NONE_MATCH"])
      end

      private

      def shared(tags)
        return ([304, @validators.dup, []] if tags == @etag) if tags

        kept = @memory.decoded(@key) { nil }
        sent(@etag, kept.body.dup) if kept
      end

      def personal(tags, viewer, found)
        versions = @request_key.viewer_versions(viewer, found) or return
        known = @keeper.known_values(@last.key, versions)
        etag = known.etag(@coding)
        return ([304, @validators.merge("etag" => etag), []] if tags == etag) if tags

        kept = @memory.decoded(@key) { nil }
        sent(etag, @keeper.filled(kept, @request_key.viewer_values(kept, viewer, known))) if kept
      end

      def sent(etag, bytes)
        headers = @headers.dup
        headers["etag"] = etag
        headers["content-length"] = bytes.bytesize.to_s
        [200, headers, Endpoint::Body.of(bytes)]
      end
    end
  end
end
