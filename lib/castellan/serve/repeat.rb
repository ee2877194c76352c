# frozen_string_literal: true

module Castellan
  module Serve
    # Responds like {Hits} to requests that equal an earlier one, in fewer steps. Frozen.
    #
    #   repeat = hits.repeat(env, keeper, request_key)
    #   found = repeat.find(env, viewer)
    #   repeat.call(env, viewer, found) if found   # => Rack's response; nil: use Hits
    #
    # Between two requests, the rest of the server evicts this code from the processor's caches. So the time of a
    # hit depends on how much code and memory it uses.
    class Repeat
      # @param fields [Hits::Fields] of the responses
      def initialize(script_name, keeper, request_key, last, fields)
        @script_name = script_name
        @keeper = keeper
        @memory = keeper.memory
        @key = keeper.stored_key(last.key, fields.coding)
        @request_key = request_key
        @personal = request_key.personal?
        @last = last
        @fields = fields
        @etag = fields.etag
        freeze
      end

      # @param env [Hash] Rack's environment, of a request with the same path, query and Accept-Encoding
      # @param viewer [Object, nil]
      # @return [Keeper::RequestKey::Found, nil] see {Keeper::RequestKey#find}
      def find(env, viewer)
        @request_key.find(:all, viewer) if env["SCRIPT_NAME"] == @script_name && Keeper.unobserved?
      end

      # @param found [Keeper::RequestKey::Found] the result of {#find}
      # @return [Array, nil] Rack's response
      def call(env, viewer, found)
        return unless @last.equal?(found.last)

        if @personal
          versions = @request_key.viewer_versions(viewer, found) or return
          known = @keeper.known_values(@last.key, versions)
        end
        etag = known ? known.etag(@fields.coding) : @etag
        outcome = Hits.condition(env, etag)
        return @fields.not_modified(etag) if outcome == :not_modified

        kept = @memory.decoded(@key) { nil } if outcome == :proceed
        @fields.response(known ? filled(kept, viewer, known) : kept.body.dup, etag) if kept
      end

      private

      def filled(kept, viewer, known) = @keeper.filled(kept, @request_key.viewer_values(kept, viewer, known))
    end
  end
end
