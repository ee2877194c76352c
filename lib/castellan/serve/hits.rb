# frozen_string_literal: true

module Castellan
  module Serve
    # Answers requests of one endpoint with documents that are kept, without a rendering. Frozen.
    #
    #   hits.call(env, viewer, id, scope, keeper, request_key)   # => Rack's response; nil where only a rendering can tell
    #
    # `request_key` is the {Keeper::RequestKey} of an earlier request with the same path and query. All else that the response depends
    # on is read here: the viewer and his scope, the version, Accept-Encoding and the preconditions.
    class Hits
      # @param cache_control [Hash{String => String}] header fields
      # @param private [Hash{String => String}] the header fields of a document with values of its viewer
      # @param vary [String] of a document without compressed forms
      # @param vary_with_coding [String]
      def initialize(cache_control:, private:, vary:, vary_with_coding:)
        @cache_control = cache_control
        @private = private
        @vary = vary
        @vary_with_coding = vary_with_coding
        freeze
      end

      # @param env [Hash] Rack's environment, negotiated
      # @param viewer [Object, nil]
      # @param id [String, nil] of one resource
      # @param scope [Object] the relation or dataset that the viewer may see; :all for all
      # @param keeper [Keeper]
      # @param request_key [Keeper::RequestKey]
      # @return [Array, nil] Rack's response
      def call(env, viewer, id, scope, keeper, request_key)
        found = request_key.find(scope, viewer) or return
        key = found.key
        offered = request_key.codings
        coding = HTTP::ContentCoding.choose(env["HTTP_ACCEPT_ENCODING"], offered) unless offered.empty?
        personal = request_key.personal?
        versions = further = request_key.viewer_versions(viewer) if personal
        if personal && versions.nil?
          kept = kept(keeper, request_key, key, coding, id) or return
          values = request_key.viewer_values(kept, viewer, key, nil)
          further = Serialize::Blanks.joined(values)
        end
        etag = further ? keeper.etag(key, further, coding) : found.etag(coding)
        headers = { "etag" => etag, "vary" => offered.empty? ? @vary : @vary_with_coding }
        headers.update(personal ? @private : @cache_control)
        outcome = condition(env, etag)
        return Endpoint.not_modified(headers) if outcome == :not_modified
        return unless outcome == :proceed && (kept ||= kept(keeper, request_key, key, coding, id))

        values ||= request_key.viewer_values(kept, viewer, key, versions) if personal
        Endpoint.sent(headers, request_key.media_type, coding, keeper.filled(kept, values))
      end

      private

      # A record that does not exist is answered by another document.
      def kept(keeper, request_key, key, coding, id)
        kept = keeper.kept(request_key.plan, key, coding)
        kept if kept && (id.nil? || kept.found)
      end

      # @return [Symbol] :unknown where the outcome depends on more than the tag
      def condition(env, etag)
        return :unknown if env["HTTP_IF_MATCH"]

        tags = env["HTTP_IF_NONE_MATCH"] or return :proceed
        return :not_modified if tags == etag

        tags.b.strip == "*" ? :unknown : HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
      end
    end
  end
end
