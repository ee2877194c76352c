# frozen_string_literal: true

module Castellan
  module Serve
    # Answers the requests to one resource: the collection and one of it. Frozen, shared by all threads.
    #
    # The version of the tables decides the preconditions first; a 304 reads nothing else. Then the body is taken from the store or
    # written once. Documents are public unless the application authenticates its clients.
    class Endpoint
      # The bytes of a long document as a Rack body that Puma does not copy: of an Array with one String it makes two copies (up to
      # 256 kB), and the garbage makes the collector of a large process run more often.
      class Body
        LONG = 16 * 1024 # bytes from which a second write costs less than the copies

        # @param bytes [String]
        # @return [#each]
        def self.of(bytes)
          bytes.bytesize < LONG ? [bytes] : new(bytes)
        end

        def initialize(bytes)
          @bytes = bytes
          freeze
        end

        # @yieldparam bytes [String]
        def each
          yield @bytes
        end

        # Called by middleware that buffers the body.
        # @return [Array<String>]
        def to_ary
          [@bytes]
        end
      end

      JSON_API = %r{\A\s*application/vnd\.api\+json}i
      # Longer query strings are parsed each time, in bytes.
      LONGEST = 1_000
      ALWAYS_ASK = HTTP::CacheControl.new
      HIT = { "cache-status" => "Castellan; hit" }.freeze
      MISS = { "cache-status" => "Castellan; fwd=miss; stored" }.freeze
      private_constant :JSON_API, :LONGEST, :ALWAYS_ASK, :HIT, :MISS

      # @return [Class]
      # @return [String] of the collection
      # @return [Array<Endpoint>] for a resource with `types`, one for each of them at the same path, which answers changes and
      #   relationships; else empty
      attr_reader :resource, :path, :types

      # @param resource [Class]
      # @param path [String] of the collection
      # @param scope [#call, nil] called with the viewer, returns the relation or dataset that this viewer may see
      # @param asked [Hash] the parameters of every request, see {Resource.document}
      # @param authenticated [Boolean] whether the viewer is known
      # @param frame [Frame] what surrounds the data
      # @raise [ConfigurationError] if one of the parameters is wrong
      def initialize(resource, path:, scope:, asked:, authenticated:, frame: Frame.new)
        @resource = resource
        @frame = frame
        @path = path
        @scope = scope
        @around = asked.slice(:meta, :links)
        @fixed = asked.except(:meta, :links).freeze
        @authenticated = authenticated
        @cache_control = Document.cache_control_of(resource.definition)
        @vary = authenticated ? "accept, authorization" : "accept"
        @vary_with_coding = "#{@vary}, accept-encoding"
        format = asked[:format] || resource.definition.document_format
        @json_api = format == :json_api
        @framed = @json_api && frame.any?
        @type = @json_api ? HTTP::Negotiation::JSON_API : "application/json"
        @negotiation = HTTP::Negotiation.new(types: [@type])
        @hits = hits if resource.definition.caching && @around.empty? && frame.purge.nil?
        @parameters = BoundedCache.new
        check
        @types = several_tables? ? [].freeze : @resource.definition.types.map { |type| endpoint_of(type, asked) }.freeze
        freeze
      end

      # @return [Boolean] whether it lists records that have URLs of their own, and has none of them
      def several_tables?
        @resource.definition.several_tables?
      end

      # @param type [String, nil]
      # @return [Endpoint, nil] the one of {#types} with this type
      def of_type(type)
        types.find { |endpoint| endpoint.resource.definition.type == type }
      end

      # @param id [String]
      # @return [Endpoint, nil] the one of {#types} that a record is of; nil if the viewer may see no such record
      def of_record(viewer, id)
        record = Write::Writer.new(@resource, viewer: viewer, scope: scope(viewer)).visible(id) or return
        kind = Rows::RecordReader::Links.kind_of(@resource.definition.itself, record)
        kind && types[kind]
      end

      # @param resource [Class] a related resource
      # @param path [String] of the collection of related resources
      # @param scope [Object] the relation or dataset; :all for all
      # @return [Endpoint] with the same authentication
      def related(resource, path, scope)
        Endpoint.new(resource, path: path, scope: ->(_viewer) { scope }, asked: {}, authenticated: @authenticated, frame: @frame)
      end

      # @param id [String, nil]
      # @return [String] the URL of the collection, or of one of it
      def location(env, id = nil)
        "#{@frame.prefix(env)}#{@path}#{"/#{Rack::Utils.escape_path(id)}" if id}"
      end

      # @return [Hash{String => String}] the header fields about caches, of linkage
      def policy
        (@authenticated ? ALWAYS_ASK.private : ALWAYS_ASK.shared).merge("vary" => @vary)
      end

      # @param env [Hash] Rack's environment
      # @param viewer [Object, nil]
      # @param id [String, nil] of one resource
      # @return [Array] Rack's response
      # @raise [BadRequest]
      def call(env, viewer, id)
        negotiate(env)
        keeper = Castellan.keeper
        return rendered(env, id, document(env, viewer, id)) unless keeper && hits?(env)

        scope = scope(viewer)
        request = request(env, id)
        found = hit(env, viewer, id, scope, keeper, request)
        return found if found

        document = document(env, viewer, id, scope: scope)
        rendered(env, id, document).tap { |response| keeper.note_request(request, document.rendering) if response.first == 200 }
      end

      # @return [Boolean] whether {#kept} may have a response: its documents are cached, and they are those of all rows
      def keeps? = !@hits.nil? && @scope.nil?

      # Responds to a GET of the collection from a cached document, for a client that negotiates nothing.
      # @param env [Hash] Rack's environment
      # @return [Array, nil] Rack's response
      def kept(env)
        keeper = Castellan.keeper
        return unless keeper && hits?(env) && env["REQUEST_METHOD"] == "GET" && env["CONTENT_TYPE"].nil? &&
                      accepts?(env["HTTP_ACCEPT"])

        hit(env, nil, nil, :all, keeper, request(env, nil))
      end

      # @return [Array] Rack's response to a request whose preconditions hold
      def self.sent(headers, media_type, coding, body)
        headers["content-type"] = media_type
        headers["content-encoding"] = coding if coding
        headers["content-length"] = body.bytesize.to_s
        [200, headers, Body.of(body)]
      end

      # The client's own copy is the outermost cache.
      # @return [Array] Rack's response
      def self.not_modified(headers)
        Recording.current&.notify(:cache, :validator, :hit, Clock.monotonic_ns, 0)
        [304, headers, []]
      end

      # Answers a request that changed a record.
      # @param document [Document] written
      # @param status [Integer]
      # @param headers [Hash{String => String}]
      # @return [Array] Rack's response
      def written(document, status, headers = {})
        body = document.to_json
        headers = { "content-type" => document.rendering.media_type, "cache-control" => "no-store", **headers, "etag" => document.etag }
        [status, headers.merge("content-length" => body.bytesize.to_s), [body]]
      end

      # JSON:API 1.1, "Server Responsibilities". The Content-Type of a request without a body is ignored, unless it is JSON:API's.
      # @param body [Boolean] whether the request has a document
      # @raise [BadRequest] 406 or 415
      def negotiate(env, body: false)
        content_type = env["CONTENT_TYPE"]
        @negotiation.request_type!(content_type) if body || (content_type && @json_api && content_type.b.match?(JSON_API))
        accept = env["HTTP_ACCEPT"]
        @negotiation.response_type!(accept) unless accepts?(accept)
      end

      # An empty relation hides everything; nil is more likely a mistake.
      # @return [Object] the relation or dataset that the viewer may see; :all for all
      # @raise [ConfigurationError]
      def scope(viewer)
        return :all unless @scope

        @scope.call(viewer) || raise(ConfigurationError, "scope: of #{@path} returned nil; return a relation or dataset, an empty one " \
                                                         "where the viewer may see nothing")
      end

      # @param member [String] a relationship's name in documents
      # @param viewer [Object, nil]
      # @return [Resource::Relationship, nil] nil if there is none, or documents of this endpoint do not show it to the viewer
      def relationship(member, viewer)
        definition = @resource.definition
        name = definition.member_named(member)
        definition.relationships[name] if @members.include?(name) && !definition.hidden_from(viewer).include?(name)
      end

      # @return [Document] one record with nothing but the linkage of a relationship
      # @raise [BadRequest]
      def linkage(viewer, id, relationship)
        @resource.document(scope(viewer), viewer: viewer, id: id, keeper: nil, include: relationship.name,
                                          fields: { @resource.definition.type => [relationship.name] })
      end

      # A condition may hide a relationship of some rows.
      # @return [Boolean] whether the record's document has the relationship
      def relates?(viewer, id, relationship)
        return true unless relationship.condition&.by_row

        !JSON.parse(linkage(viewer, id, relationship).to_json).dig("data", "relationships", relationship.key).nil?
      end

      # @param id [String, nil]
      # @param keeper [Keeper, nil] nil: not from the store
      # @param parameters [Parameters, nil] nil: those of the query string
      # @param scope [Object, nil] nil: the one of {#scope}
      # @return [Document] the document that the request names
      # @raise [BadRequest]
      def document(env, viewer, id, keeper: Castellan.keeper, scope: nil)
        parameters, document =
          if env.key?(Tracing::TRACED) then Recording.span(:plan, @resource.name) { planned(env, viewer, id, keeper) }
          else planned(env, viewer, id, keeper, scope)
          end
        frame(document, env, id) if @framed
        link(document, env, parameters) if id.nil? && @json_api && parameters.request.page
        document
      end

      private

      def hits
        status = @frame.cache_status ? HIT : {}
        personal = { **@cache_control.private, **status }.freeze
        fields = @authenticated ? personal : { **@cache_control.shared, **status }.freeze
        Hits.new(cache_control: fields, private: personal, vary: @vary, vary_with_coding: @vary_with_coding)
      end

      def accepts?(accept) = accept.nil? || accept == "*/*" || accept == @type

      # @return [Array] what identifies a request of this endpoint
      def request(env, id) = [self, env["SCRIPT_NAME"], id, env["QUERY_STRING"]]

      def hit(env, viewer, id, scope, keeper, request)
        request_key = keeper.request_key(request)
        @hits.call(env, viewer, id, scope, keeper, request_key) if request_key
      end

      # Tracing reports the phases of a rendering. Long queries are parsed each time, so no key can be found by them.
      def hits?(env)
        @hits && !env.key?(Tracing::TRACED) && (env["QUERY_STRING"] || "").bytesize <= LONGEST
      end

      def rendered(env, id, document)
        vary = encode(document.rendering, env)
        purged = purged?(document, env, vary) if @frame.purge
        headers = { "etag" => document.rendering.etag, "vary" => vary, **fields(document, purged) }
        case precondition(env, document, id, headers["etag"])
        when :not_modified then Endpoint.not_modified(headers.merge(cache_status(document.rendering)))
        when :precondition_failed then ErrorDocument.response(412, "the representation is not the one that the request names")
        when :absent then absent(id)
        else answer(document, id, headers, (env if purged))
        end
      end

      def purged?(document, env, vary)
        document.public! unless @authenticated
        CacheFields.purged?(@frame.purge, document, env, vary)
      end

      # Per-viewer values are private, also without `authenticate`.
      def fields(document, purged)
        return CacheFields.of(document, @frame.purge, purged) if @frame.purge

        @authenticated || document.rendering.plan.holes.any? ? @cache_control.private : @cache_control.shared
      end

      def planned(env, viewer, id, keeper, scope = nil)
        parameters = parameters(env["QUERY_STRING"] || "")
        scope ||= scope(viewer)
        [parameters, @resource.document(scope, viewer: viewer, id: id || :all, query: parameters.request, keeper: keeper, **@around)]
      end

      def endpoint_of(type, asked)
        reached = type.reachable.map(&:type)
        fields = asked[:fields]&.select { |name, _| reached.include?(name.to_s) }
        Endpoint.new(type.resource, path: @path, scope: ->(viewer) { scope_of(type, viewer) }, authenticated: @authenticated, frame: @frame,
                                    asked: { **asked.slice(:representation, :format), fields: fields }.compact)
      end

      # @return [Object] the relation or dataset of one type that the viewer may see here; :all for all
      def scope_of(type, viewer)
        seen = seen_of(type, viewer)
        kind = @resource.definition.types.index(type)
        return seen if @resource.definition.types.none? { |other| other.model < type.model }

        # The model of this type has the rows of another, too.
        seen = type.resource.checked_rows.scopes.all if :all.equal?(seen)
        Rows::Inheritance.new(@resource.definition.itself, @resource.checked_rows).only(seen, kind)
      end

      def seen_of(type, viewer)
        all = scope(viewer)
        definition = @resource.definition
        return :all if :all.equal?(all) && (definition.scope.nil? || definition.scope.equal?(type.scope))

        adapter = @resource.checked_rows
        seen = Rows::ViewerScopes.new(viewer).narrow(definition, adapter, (adapter.scopes.from(all) unless :all.equal?(all)))
        Rows::ViewerScopes::ScopedRows.new(definition, adapter, seen).narrow(type.resource.checked_rows.scopes.all)
      end

      # Clients choose among the members that the fixed parameters leave. A wrong one is the developer's mistake.
      def check
        raise ConfigurationError, "resource #{@resource}: scope: is one of each of its types; declare it there" if several_tables? && @scope

        @members = Plan::Request.parse(@resource.definition, {}, **@fixed).fields.of(@resource.definition)
      rescue BadRequest => error
        raise ConfigurationError, "resource #{@resource}: #{error.message}"
      end

      # A request has no state, so the same query is parsed once. Bounded, because clients write it.
      def parameters(text)
        return Parameters.new(text, @resource.definition, @fixed, @frame.own) if text.bytesize > LONGEST

        @parameters.fetch(text) { Parameters.new(text, @resource.definition, @fixed, @frame.own) }
      end

      def frame(document, env, id)
        document.rendering.frame(@frame.jsonapi, @frame.links(location(env, id), env["QUERY_STRING"]))
      end

      def link(document, env, parameters)
        prefix = @frame.prefix(env) unless @frame.base_url.nil? && env["SCRIPT_NAME"].to_s.empty?
        base = "#{prefix}#{@path}#{parameters.rest}"
        document.rendering.link(base) { |total, full| parameters.links(base, total, full) }
      end

      # RFC 9110, section 13.2.1: preconditions are ignored where the response would not be 2xx. An entity tag that matches exactly
      # proves that the record exists; any other outcome needs a look.
      def precondition(env, document, id, etag)
        return unless env["HTTP_IF_NONE_MATCH"] || env["HTTP_IF_MATCH"]

        outcome = HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
        return outcome if outcome == :proceed || id.nil?

        exact = outcome == :not_modified && env["HTTP_IF_NONE_MATCH"].b.strip != "*"
        exact || document.status == 200 ? outcome : :absent
      end

      # Kept documents are also kept compressed. A proxy or Rack::Deflater leaves a response with a Content-Encoding as it is.
      # @return [String] the Vary field
      def encode(rendering, env)
        offered = rendering.codings
        return @vary if offered.empty?

        coding = HTTP::ContentCoding.choose(env["HTTP_ACCEPT_ENCODING"], offered)
        rendering.encode(coding) if coding
        @vary_with_coding
      end

      # @param noted [Hash, nil] Rack's environment, if the response names its records to proxies
      def answer(document, id, headers, noted)
        return absent(id) if id && document.status == 404

        rendering = document.rendering
        headers.merge!(@frame.purge.headers(rendering, noted, headers["vary"])) if noted
        body = rendering.encoded
        headers.merge!(cache_status(rendering)) if @frame.cache_status
        Endpoint.sent(headers, rendering.media_type, rendering.coding, body)
      end

      # @return [Hash{String => String}]
      def cache_status(rendering)
        return {} unless @frame.cache_status && rendering.kept?

        rendering.rendered? ? MISS : HIT
      end

      def absent(id)
        ErrorDocument.response(404, "there is no #{@resource.definition.type} with the id #{id[0, 100].inspect}", "vary" => @vary)
      end
    end
  end
end
