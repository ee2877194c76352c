# frozen_string_literal: true

module Castellan
  module Serve
    # Answers the requests to one resource: the collection and one of it. Frozen, shared by all threads.
    #
    # The version of the tables decides the preconditions first; a 304 reads nothing else. Then the body is taken from the store or
    # written once. Documents are public unless the application authenticates its clients.
    class Endpoint
      JSON_API = %r{\A\s*application/vnd\.api\+json}i
      # Two slashes at the beginning of a link would name another host.
      SLASHES = %r{\A/+}
      private_constant :JSON_API, :SLASHES

      # @param resource [Class]
      # @param path [String] of the collection
      # @param scope [#call, nil] called with the viewer, returns the relation or dataset that this viewer may see
      # @param asked [Hash] what is fixed whatever the client asks, see {Resource.document}
      # @param authenticated [Boolean] whether the viewer is known
      def initialize(resource, path:, scope:, asked:, authenticated:)
        @resource = resource
        @path = path
        @scope = scope
        @asked = asked
        @around = asked.slice(:meta, :links)
        @unasked = Plan::Request.parse(resource.definition, {}, **asked.except(:meta, :links))
        @fixed = asked.keys.map(&:name) & Plan::Request::FAMILIES
        @authenticated = authenticated
        @vary = authenticated ? "accept, authorization" : "accept"
        @json_api = (asked[:format] || resource.definition.document_format) == :json_api
        @negotiation = HTTP::Negotiation.new(types: @json_api ? [HTTP::Negotiation::JSON_API] : ["application/json"])
        freeze
      end

      # @param env [Hash] Rack's environment
      # @param viewer [Object, nil]
      # @param id [String, nil] of one resource
      # @return [Array] Rack's response
      # @raise [BadRequest]
      def call(env, viewer, id)
        negotiate(env)
        document = document_for(env, viewer, id)
        headers = { "etag" => document.rendering.etag, "cache-control" => document.cache_control, "vary" => @vary }
        case precondition(env, document, id, headers["etag"])
        when :not_modified then not_modified(headers)
        when :precondition_failed then ErrorDocument.response(412, "the representation is not the one that the request names")
        when :absent then absent(id)
        else answer(document, id, headers)
        end
      end

      private

      # JSON:API 1.1, "Server Responsibilities". Other Content-Types are ignored, because requests have no body here.
      def negotiate(env)
        content_type = env["CONTENT_TYPE"]
        @negotiation.request_type!(content_type) if content_type && @json_api && content_type.b.match?(JSON_API)
        @negotiation.response_type!(env["HTTP_ACCEPT"])
      end

      def document_for(env, viewer, id)
        query = QueryString.parse(env["QUERY_STRING"])
        refuse_fixed(query) unless query.empty?
        document = @resource.document(scope(viewer), viewer: viewer, id: id || :all, **request(query))
        link(document, env["SCRIPT_NAME"], query) unless id
        @authenticated ? document : document.public!
      end

      # An empty relation hides everything; nil is more likely a mistake.
      def scope(viewer)
        return :all unless @scope

        @scope.call(viewer) || raise(ConfigurationError, "scope: of #{@path} returned nil; return a relation or dataset, an empty one " \
                                                         "where the viewer may see nothing")
      end

      # A request without parameters was parsed at boot.
      def request(query)
        query.empty? ? { query: @unasked, **@around } : { query: query, **@asked }
      end

      # JSON:API 1.1, "Inclusion of Related Resources": an endpoint that does not support `include` answers 400 to it.
      def refuse_fixed(query)
        family = query.keys.find { |name| @fixed.include?(name) } or return

        Plan::Parameter.refuse(family, "#{family} cannot be asked for here: it is always the same")
      end

      def link(document, script_name, query)
        return unless @json_api && (page = document.rendering.request.page)

        links = PageLinks.new("#{ClientText.utf8(script_name.to_s).sub(SLASHES, "/")}#{@path}", query, page: page)
        document.rendering.link(links.base) { |total, full| links.to_h(total: total, full: full) }
      end

      # RFC 9110, section 13.2.1: preconditions are ignored where the response would not be 2xx. An entity tag that matches exactly
      # proves that the record exists; any other outcome needs a look.
      def precondition(env, document, id, etag)
        outcome = HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
        return outcome if outcome == :proceed || id.nil?

        exact = outcome == :not_modified && env["HTTP_IF_NONE_MATCH"].b.strip != "*"
        exact || document.status == 200 ? outcome : :absent
      end

      def answer(document, id, headers)
        return absent(id) if id && document.status == 404

        rendering = document.rendering
        headers["content-type"] = Document::MEDIA_TYPES.fetch(rendering.plan.format)
        body = rendering.body
        headers["content-length"] = body.bytesize.to_s
        [200, headers, Body.of(body)]
      end

      def absent(id)
        ErrorDocument.response(404, "there is no #{@resource.definition.type} with the id #{id[0, 100].inspect}", "vary" => @vary)
      end

      # The client's own copy is the outermost cache.
      def not_modified(headers)
        Recording.look(:validator) { true }
        [304, headers, []]
      end
    end
  end
end
