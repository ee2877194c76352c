# frozen_string_literal: true

module Castellan
  module Serve
    # Responds like {Hits} to requests that equal an earlier one, in fewer steps. Frozen.
    #
    #   repeat = hits.repeat(env, keeper, request_key)
    #   repeat.call(env)   # => Rack's response; nil: use Hits
    #
    # Between two requests, the rest of the server evicts this code from the processor's caches. So the time of a
    # hit depends on how much code and memory it uses.
    class Repeat
      def initialize(script_name, keeper, request_key, last, fields)
        @script_name = script_name
        @memory = keeper.memory
        @key = keeper.stored_key(last.key, fields.coding)
        @request_key = request_key
        @last = last
        @fields = fields
        @etag = fields.etag
        freeze
      end

      # @param env [Hash] Rack's environment, of a request with the same path, query and Accept-Encoding
      # @return [Array, nil] Rack's response
      def call(env)
        tags = env["HTTP_IF_NONE_MATCH"]
        return unless env["SCRIPT_NAME"] == @script_name && env["HTTP_IF_MATCH"].nil? && (tags.nil? || tags == @etag) &&
                      Keeper.unobserved? && @last.equal?(@request_key.find(:all, nil)&.last)
        return [304, @fields.validators.dup, []] if tags

        kept = @memory.decoded(@key) { nil }
        @fields.response(kept.body.dup) if kept
      end
    end
  end
end
