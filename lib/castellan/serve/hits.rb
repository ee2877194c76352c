# frozen_string_literal: true

module Castellan
  module Serve
    # Responds to requests of one endpoint from cached documents, without a rendering. Frozen.
    #
    #   hits.call(env, viewer, id, scope, keeper, request_key)   # => Rack's response; nil: render
    #
    # `request_key` is the {Keeper::RequestKey} of an earlier request with the same path and query. Everything
    # else on which the response depends is read here: viewer, scope, version, Accept-Encoding and
    # preconditions.
    class Hits
      # @param cache_control [Hash{String => String}] header fields
      # @param private [Hash{String => String}] header fields of a document with per-viewer values
      # @param vary [String] the Vary field of a document without compressed forms
      # @param vary_with_coding [String] the Vary field of a document with compressed forms
      def initialize(cache_control:, private:, vary:, vary_with_coding:)
        @cache_control = cache_control
        @private = private
        @vary = vary
        @vary_with_coding = vary_with_coding
        freeze
      end

      # @param env [Hash] Rack's environment, negotiated
      # @param viewer [Object, nil]
      # @param id [String, nil] nil: the collection
      # @param scope [Object] the relation or dataset that the viewer may see; :all without a scope
      # @param keeper [Keeper]
      # @param request_key [Keeper::RequestKey]
      # @return [Array, nil] Rack's response; nil if a rendering is needed
      def call(env, viewer, id, scope, keeper, request_key)
        found = request_key.find(scope, viewer) or return
        key = found.key
        if request_key.expires_in
          expiring = keeper.kept_for_now(request_key.plan, key, request_key.expires_in)
          return unless expiring && (id.nil? || expiring.found)
        end
        accepted = env["HTTP_ACCEPT_ENCODING"]
        coding = request_key.coding(accepted) { |offered| HTTP::ContentCoding.choose(accepted, offered) }
        personal = request_key.personal?
        versions = further = request_key.viewer_versions(viewer) if personal
        if personal && versions.nil?
          kept = kept(keeper, request_key, key, coding, id, expiring) or return
          values = request_key.viewer_values(kept, viewer, key, nil)
          further = Serialize::Blanks.joined(values)
        end
        further = [expiring.tag, further] if further && expiring
        etag = further ? keeper.etag(key, further, coding) : found.etag(coding, expiring)
        headers = { "etag" => etag, "vary" => request_key.codings? ? @vary_with_coding : @vary }
        headers.update(personal ? @private : @cache_control)
        outcome = condition(env, etag)
        return [304, headers, []] if outcome == :not_modified
        return unless outcome == :proceed && (kept ||= kept(keeper, request_key, key, coding, id, expiring))

        values ||= request_key.viewer_values(kept, viewer, key, versions) if personal
        Endpoint.sent(headers, request_key.media_type, coding, keeper.filled(kept, values))
      end

      private

      # For a missing record, the response is an error document instead of the cached one.
      def kept(keeper, request_key, key, coding, id, expiring)
        return expiring if expiring && coding.nil?

        kept = keeper.kept(request_key.plan, key, coding, of: expiring)
        kept if kept && (id.nil? || kept.found)
      end

      # @return [Symbol] :unknown if the outcome depends on more than the tag
      def condition(env, etag)
        return :unknown if env["HTTP_IF_MATCH"]

        tags = env["HTTP_IF_NONE_MATCH"] or return :proceed
        return :not_modified if tags == etag

        tags.b.strip == "*" ? :unknown : HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
      end
    end
  end
end
