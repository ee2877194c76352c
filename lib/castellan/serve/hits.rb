# frozen_string_literal: true

module Castellan
  module Serve
    # Responds to requests of one endpoint from cached documents, without a rendering. Frozen.
    #
    #   hits.call(env, viewer, id, keeper, request_key, found)   # => Rack's response; nil: render
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
      # @param keeper [Keeper]
      # @param request_key [Keeper::RequestKey]
      # @param found [Keeper::RequestKey::Found] the result of its `find` in this request
      # @return [Array, nil] Rack's response; nil if a rendering is needed
      def call(env, viewer, id, keeper, request_key, found)
        return varying(env, viewer, id, keeper, request_key, found) if request_key.varying?

        last = found.last
        fields = fields(env["HTTP_ACCEPT_ENCODING"], request_key, last)
        outcome = Hits.condition(env, fields.etag)
        return fields.not_modified if outcome == :not_modified

        kept = keeper.kept(request_key.plan, last.key, fields.coding) if outcome == :proceed
        fields.response(keeper.filled(kept, nil)) if kept && (id.nil? || kept.found) # for a missing record, an error document
      end

      # @param env [Hash] the environment of a request to which {#call} has responded without a scope
      # @param request_key [Keeper::RequestKey]
      # @return [Repeat, nil] for equal requests; nil if documents are not kept in this process or expire, or if the values
      #   of viewers have no version
      def repeat(env, keeper, request_key)
        return if keeper.memory.nil? || request_key.expires_in || (last = request_key.last).nil?
        return unless request_key.plan.holes.all?(&:version)

        Repeat.new(env["SCRIPT_NAME"].dup.freeze, keeper, request_key, last, fields(env["HTTP_ACCEPT_ENCODING"], request_key, last))
      end

      # @return [Symbol] :proceed, :not_modified, or :unknown if the outcome depends on more than the tag
      def self.condition(env, etag)
        return :unknown if env["HTTP_IF_MATCH"]

        tags = env["HTTP_IF_NONE_MATCH"] or return :proceed
        return :not_modified if tags == etag

        tags.b.strip == "*" ? :unknown : HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
      end

      private

      # Header fields of responses in one coding: `validators` of a 304, `all` of a 200 without Content-Length.
      Fields = Struct.new(:coding, :etag, :validators, :all) do
        def not_modified(tag = etag) = [304, validators.merge("etag" => tag), HTTP::NOTHING]

        def response(bytes, tag = etag)
          [200, all.merge("etag" => tag, "content-length" => bytes.bytesize.to_s), Endpoint::Body.of(bytes)]
        end
      end
      private_constant :Fields

      def fields(accepted, request_key, last)
        request_key.of_coding(last, accepted) do |codings|
          coding = HTTP::ContentCoding.choose(accepted, codings)
          validators = { "etag" => last.etag(coding), "vary" => codings.empty? ? @vary : @vary_with_coding,
                         **(request_key.personal? ? @private : @cache_control) }
          all = { **validators, "content-type" => request_key.media_type, "content-encoding" => coding }.compact
          Fields.new(coding, validators["etag"], validators.freeze, all.freeze).freeze
        end
      end

      # Responds with a document that expires or has per-viewer values.
      def varying(env, viewer, id, keeper, request_key, found)
        last = found.last
        key = last.key
        if request_key.expires_in
          expiring = keeper.kept_for_now(request_key.plan, key, request_key.expires_in)
          return unless expiring && (id.nil? || expiring.found)
        end
        fields = fields(env["HTTP_ACCEPT_ENCODING"], request_key, last)
        coding = fields.coding
        personal = request_key.personal?
        if personal && (versions = request_key.viewer_versions(viewer, found))
          known = keeper.known_values(key, versions, expiring&.tag)
          etag = known.etag(coding)
        elsif personal
          kept = kept(keeper, request_key, key, coding, id, expiring) or return
          values = request_key.viewer_values(kept, viewer, nil)
          joined = Serialize::Blanks.joined(values)
          etag = keeper.etag(key, expiring ? [expiring.tag, joined] : joined, coding)
        else
          etag = last.etag(coding, expiring)
        end
        outcome = Hits.condition(env, etag)
        return fields.not_modified(etag) if outcome == :not_modified
        return unless outcome == :proceed && (kept ||= kept(keeper, request_key, key, coding, id, expiring))

        values ||= request_key.viewer_values(kept, viewer, known) if personal
        fields.response(keeper.filled(kept, values), etag)
      end

      def kept(keeper, request_key, key, coding, id, expiring)
        return expiring if expiring && coding.nil?

        kept = keeper.kept(request_key.plan, key, coding, of: expiring)
        kept if kept && (id.nil? || kept.found)
      end
    end
  end
end
