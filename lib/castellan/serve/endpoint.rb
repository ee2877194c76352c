# frozen_string_literal: true

module Castellan
  module Serve
    # Responds to reads of one resource, of its collection or a single record. Frozen and thread-safe.
    #
    #   endpoint = Endpoint.new(PostResource, path: "/posts", scope: nil, asked: {}, authenticated: false)
    #   endpoint.call(env, nil, "7")   # => Rack's response
    #
    # Evaluates preconditions by the version of the tables first, so that a 304 reads nothing else.
    class Endpoint
      # Wraps a long document as a Rack body that Puma does not copy. Puma copies the String of a one-element
      # Array twice (up to 256 kB), and that garbage makes the GC of a large process run more often.
      class Body
        LONG = 16 * 1024 # bytes; above, a second write costs less than the copies

        # @param bytes [String]
        # @return [#each] a Rack body
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
      # Bytes; longer query strings are parsed each time.
      LONGEST = 1_000
      NOTED = [200, 304].freeze
      HIT = { "cache-status" => "Castellan; hit" }.freeze
      MISS = { "cache-status" => "Castellan; fwd=miss; stored" }.freeze
      UNSTORED = { "cache-status" => "Castellan; fwd=miss" }.freeze
      NO_OWNER = {}.freeze
      private_constant :NO_OWNER, :JSON_API, :LONGEST, :NOTED, :HIT, :MISS, :UNSTORED

      # @return [Class]
      # @return [String] the path of the collection
      # @return [Array<Endpoint>] for a resource with `types`, one endpoint per type at the same path, for
      #   changes and relationships; otherwise empty
      attr_reader :resource, :path, :types

      # @param resource [Class]
      # @param path [String] of the collection
      # @param scope [#call, nil] called with the viewer, returns the relation or dataset that it may see
      # @param asked [Hash] the fixed parameters of every request, see {Resource.document}
      # @param authenticated [Boolean] whether requests have a viewer; then documents are private
      # @param frame [Frame] the members around the data
      # @param owner [Hash{String => Array<String>}, nil] for the related resources of a record: its table, and
      #   the tags of {Purge} that are sent when it changes; nil if they are unknown
      # @param once [Boolean] whether it serves the related resources of one request; remembered for others, it would keep
      #   their records in memory
      # @raise [ConfigurationError] if a fixed parameter is invalid
      def initialize(resource, path:, scope:, asked:, authenticated:, frame: Frame.new, owner: NO_OWNER, once: false)
        @resource = resource
        @owner = owner
        @once = once
        @frame = frame
        @path = path
        @scope = scope
        @around = asked.slice(:meta, :links)
        @fixed = asked.except(:meta, :links).freeze
        @authenticated = authenticated
        @cache_control = Document.cache_control_of(resource.definition)
        @vary = authenticated ? "accept, authorization" : "accept"
        @vary_with_coding = "#{@vary}, accept-encoding".freeze
        format = asked[:format] || resource.definition.document_format
        @json_api = format == :json_api
        @framed = @json_api && frame.any?
        @type = @json_api ? HTTP::Negotiation::JSON_API : "application/json"
        @negotiation = HTTP::Negotiation.new(types: [@type])
        @hits = hits if resource.definition.caching && @around.empty? && frame.purge.nil? && !once
        @parameters = BoundedCache.new
        check
        @types = several_tables? ? [].freeze : @resource.definition.types.map { |type| endpoint_of(type, asked, once) }.freeze
        freeze
      end

      # @return [Boolean] whether it only lists records, whose URLs are those of their types
      def several_tables?
        @resource.definition.several_tables?
      end

      # @param type [String, nil]
      # @return [Endpoint, nil] the one of {#types} with this type
      def of_type(type)
        types.find { |endpoint| endpoint.resource.definition.type == type }
      end

      # @param id [String]
      # @return [Endpoint, nil] the one of {#types} for this record; nil if the viewer may not see it
      def of_record(viewer, id)
        record = Write::Writer.new(@resource, viewer: viewer, scope: scope(viewer)).visible(id) or return
        kind = Rows::RecordReader::Links.kind_of(@resource.definition.itself, record)
        kind && types[kind]
      end

      # @param resource [Class] a related resource
      # @param path [String] of the collection of related resources
      # @param scope [Object] the relation or dataset; :all for all
      # @param id [String] of the record
      # @return [Endpoint] with the same authentication
      def related(resource, path, scope, id)
        Endpoint.new(resource, path: path, scope: ->(_viewer) { scope }, asked: {}, authenticated: @authenticated, frame: @frame,
                               owner: @frame.purge ? owner(id) : NO_OWNER, once: true)
      end

      # @param id [String, nil]
      # @return [String] the URL of the collection, or of the record
      def location(env, id = nil)
        "#{@frame.prefix(env)}#{@path}#{"/#{ERB::Util.url_encode(id)}" if id}"
      end

      # @return [Hash{String => String}] Cache-Control and Vary of relationship linkage
      def policy
        CacheFields::ALWAYS_ASK.public_send(@authenticated ? :private : :shared).merge("vary" => @vary)
      end

      # @return [Hash{String => String}] Cache-Control and CDN-Cache-Control of documents without query
      #   parameters. A purge may weaken them to "no-cache"
      def cache_fields
        personal = @authenticated || Plan.compile(@resource.definition, parameters("").request).holes.any?
        personal ? @cache_control.private : @cache_control.shared
      end

      # @param env [Hash] Rack's environment
      # @param viewer [Object, nil]
      # @param id [String, nil] nil: the collection
      # @return [Array] Rack's response
      # @raise [BadRequest] if the request is invalid
      def call(env, viewer, id)
        negotiate(env)
        keeper = Castellan.keeper
        return rendered(env, id, document(env, viewer, id)) unless keeper && hits?(env)

        scope = scope(viewer)
        found = hit(env, viewer, id, scope, keeper)
        return found if found

        document = document(env, viewer, id, scope: scope)
        rendered(env, id, document).tap do |response|
          keeper.note_request(request(env, id), document.rendering) if NOTED.include?(response.first)
        end
      end

      # @return [Boolean] whether requests have a viewer
      def authenticated? = @authenticated

      # @return [String] that of its documents
      def media_type = @type

      # @return [Boolean] whether {#kept} may return a response: documents are cached and have no scope
      def keeps? = !@hits.nil? && @scope.nil?

      # Responds to a GET of the collection from the cache, without negotiation or a rendering.
      # @param env [Hash] Rack's environment
      # @return [Array, nil] Rack's response; nil: use {#call}
      def kept(env)
        keeper = Castellan.keeper
        return unless keeper && env["REQUEST_METHOD"] == "GET" && env["CONTENT_TYPE"].nil? && env[Tracing::TRACED].nil? &&
                      accepts?(env["HTTP_ACCEPT"])

        hit(env, nil, nil, :all, keeper)
      end

      # Publishes a hit in the client's own cache.
      # @return [Array] Rack's response with status 304
      def self.not_modified(headers)
        Cache::Events.publish(:validator, :hit, Clock.monotonic_ns) if Cache::Events.wanted?
        [304, headers, HTTP::NOTHING]
      end

      # Responds to a request that has changed a record.
      # @param document [Document] of the record
      # @param status [Integer]
      # @param headers [Hash{String => String}]
      # @return [Array] Rack's response
      def written(document, status, headers = {})
        body = document.to_json
        headers = { "content-type" => document.rendering.media_type, "cache-control" => "no-store", **headers, "etag" => document.etag }
        [status, headers.merge("content-length" => body.bytesize.to_s), [body]]
      end

      # Checks Accept and Content-Type (JSON:API 1.1, "Server Responsibilities"). Ignores the Content-Type of
      # a request without a body, unless it is JSON:API's.
      # @param env [Hash] Rack's environment
      # @param body [Boolean] whether the request must contain a document
      # @raise [BadRequest] 406 or 415
      def negotiate(env, body: false)
        content_type = env["CONTENT_TYPE"]
        @negotiation.request_type!(content_type) if body || (content_type && @json_api && content_type.b.match?(JSON_API))
        accept = env["HTTP_ACCEPT"]
        @negotiation.response_type!(accept) unless accepts?(accept)
      end

      # @param viewer [Object, nil]
      # @return [Object] the relation or dataset that the viewer may see; :all without a scope
      # @raise [ConfigurationError] if the scope returns nil, more likely a mistake than an empty scope
      def scope(viewer)
        return :all unless @scope

        @scope.call(viewer) || raise(ConfigurationError, "scope: of #{@path} returned nil; return a relation or dataset, an empty one " \
                                                         "where the viewer may see nothing")
      end

      # @param member [String] a relationship's name in documents
      # @param viewer [Object, nil]
      # @return [Resource::Relationship, nil] nil if it does not exist or is hidden from the viewer here
      def relationship(member, viewer)
        definition = @resource.definition
        name = definition.member_named(member)
        definition.relationships[name] if @members.include?(name) && !definition.hidden_from(viewer).include?(name)
      end

      # @param member [String] a relationship's name in documents
      # @return [Boolean] whether it has URLs here, of one of the types at least
      def serves?(member, viewer)
        several_tables? || (types.empty? ? [self] : types).any? { |endpoint| endpoint.relationship(member, viewer) }
      end

      # @param name [Symbol] such as :include
      # @return [Boolean] whether clients cannot choose it, because the application does
      def fixes?(name) = @fixed.key?(name)

      # @return [Document] one record with only the linkage of a relationship
      # @raise [BadRequest] if the request is invalid
      def linkage(viewer, id, relationship)
        fields = { **relationship.definitions.to_h { |other| [other.type, []] }, @resource.definition.type => [relationship.name] }
        @resource.document(scope(viewer), viewer: viewer, id: id, keeper: nil, include: relationship.name, format: :json_api,
                                          fields: fields)
      end

      # @return [Document] one record in JSON:API, as {Operations} sends it also for a resource in another format
      def result(env, viewer, id)
        return document(env.merge("QUERY_STRING" => ""), viewer, id, keeper: nil) if @json_api

        @resource.document(scope(viewer), viewer: viewer, id: id, keeper: nil, **@fixed, format: :json_api)
      end

      # Checks the condition of a relationship, which may hide it in some rows.
      # @return [Boolean] whether the record's document has the relationship
      def relates?(viewer, id, relationship)
        return true unless relationship.condition&.by_row

        !JSON.parse(linkage(viewer, id, relationship).to_json).dig("data", "relationships", relationship.key).nil?
      end

      # @param name [String, nil] the relationship of related resources, such as /posts/1/comments
      # @return [Integer] see {App#cost}
      # @raise [BadRequest] if the query string is invalid
      def cost(query, id, name = nil)
        return related_cost(query, id, name) if name

        asked = parameters(query).request
        nodes = Plan.compile(@resource.definition, asked).nodes.size
        nodes + (id || asked.page.nil? ? 0 : asked.page.last / 100)
      end

      # @raise [BadRequest] if the query string is invalid
      def check_query(env) = parameters(env["QUERY_STRING"] || "")

      # @raise [BadRequest] see {Frame#only_own!}
      def only_own!(env, *also) = @frame.only_own!(env, *also)

      # @param env [Hash] Rack's environment
      # @return [Hash{String => Object}] the top-level members of the document of a related resource that does not exist
      def members_beside_null(env)
        included = { "included" => [] } if Parameters.read(env["QUERY_STRING"] || "")["include"]
        { **(included || {}), **(@framed ? @frame.members(location(env), env["QUERY_STRING"]) : {}) }
      end

      # @param env [Hash] Rack's environment
      # @param viewer [Object, nil]
      # @param id [String, nil] nil: the collection
      # @param keeper [Keeper, nil] nil: do not use the cache
      # @param scope [Object, nil] nil: that of {#scope}
      # @return [Document] the requested document
      # @raise [BadRequest] if the query string is invalid
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

      # One, if the type of the related records is known only when they are read.
      def related_cost(query, id, name)
        definition = @resource.definition
        relationship = definition.relationships[definition.member_named(name)]
        return 1 unless relationship&.related? && relationship.definitions.one?

        related(relationship.resource, @path, :all, id).cost(query, relationship.to_many? ? nil : id)
      end

      def hits
        status = @frame.cache_status ? HIT : {}
        personal = { **@cache_control.private, **status }.freeze
        fields = @authenticated ? personal : { **@cache_control.shared, **status }.freeze
        Hits.new(cache_control: fields, private: personal, vary: @vary, vary_with_coding: @vary_with_coding)
      end

      def accepts?(accept) = accept.nil? || accept == "*/*" || accept == @type

      # @return [Array] identifies equal requests, see {Keeper#request_key}
      def request(env, id) = [self, env["SCRIPT_NAME"], id, env["QUERY_STRING"]]

      def note(env, keeper, request_key, repeats)
        accepted = env["HTTP_ACCEPT_ENCODING"]
        return if accepted && accepted.bytesize > Keeper::RequestKey::LONGEST_FIELD

        known = repeats.fetch(env["QUERY_STRING"]) { {} }
        return unless known.size < Keeper::RequestKey::MOST_FIELDS || known.key?(accepted)

        repeat = @hits.repeat(env, keeper, request_key)
        known[accepted] = repeat if repeat
      end

      # @return [Array, nil] Rack's response from the cache
      def hit(env, viewer, id, scope, keeper)
        repeats = keeper.repeats(self) if id.nil? && :all.equal?(scope) # before the key: a new revision must not get old bytes
        known = repeats && repeats[env["QUERY_STRING"]]
        repeat = known && known[env["HTTP_ACCEPT_ENCODING"]]
        found = repeat&.find(env, viewer)
        response = repeat.call(env, viewer, found) if found
        return response if response

        request_key = keeper.request_key(request(env, id)) or return
        found ||= request_key.find(scope, viewer)
        response = @hits.call(env, viewer, id, keeper, request_key, found) if found
        note(env, keeper, request_key, repeats) if repeats && response && response.first == 200
        response
      end

      # Tracing reports the phases of a rendering, so it needs one. Long queries have no {Keeper::RequestKey}.
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
        !@owner.nil? && CacheFields.purged?(@frame.purge, document, env, vary, further: @owner.keys)
      end

      # A scope may read other tables.
      def owner(id)
        definition = @resource.definition
        adapter = @resource.checked_rows
        return if @scope || definition.scope || several_tables? || adapter.scopes.hide_rows?

        { adapter.table => Purge::Tags.of_row(adapter.table, id) }
      end

      # Documents with per-viewer values are private, also without `authenticate`.
      def fields(document, purged)
        return CacheFields.of(document, @frame.purge, purged) if @frame.purge

        @authenticated || document.rendering.plan.holes.any? ? @cache_control.private : @cache_control.shared
      end

      def planned(env, viewer, id, keeper, scope = nil)
        parameters = parameters(env["QUERY_STRING"] || "")
        scope ||= scope(viewer)
        [parameters, @resource.document(scope, viewer: viewer, id: id || :all, query: parameters.request, keeper: keeper, **@around)]
      end

      def endpoint_of(type, asked, once)
        reached = type.reachable.map(&:type)
        fields = asked[:fields]&.select { |name, _| reached.include?(name.to_s) }
        Endpoint.new(type.resource, path: @path, scope: ->(viewer) { scope_of(type, viewer) }, authenticated: @authenticated, frame: @frame,
                                    asked: { **asked.slice(:representation, :format), fields: fields }.compact, once: once)
      end

      # @return [Object] the relation or dataset of one type that the viewer may see; :all without a scope
      def scope_of(type, viewer)
        seen = seen_of(type, viewer)
        kind = @resource.definition.types.index(type)
        return seen if @resource.definition.types.none? { |other| other.model < type.model }

        # The model of this type also has rows of another type.
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

      # Parses the fixed parameters once; clients choose among the members that they leave.
      def check
        raise ConfigurationError, "resource #{@resource}: it has types of several tables; leave scope: out, and declare one in each type" \
          if several_tables? && @scope

        @members = Plan::Request.parse(@resource.definition, {}, **@fixed).fields.of(@resource.definition)
      rescue BadRequest => error
        raise ConfigurationError, "resource #{@resource}: #{error.message}"
      end

      # Parses equal queries once. The cache is bounded, because clients write them.
      def parameters(text)
        return Parameters.new(text, @resource.definition, @fixed, @frame.own) if text.bytesize > LONGEST

        @parameters.fetch(text) { Parameters.new(text, @resource.definition, @fixed, @frame.own) }
      end

      # The path of a related resource is whole without its id.
      def frame(document, env, id)
        document.rendering.frame(@frame.jsonapi, @frame.links(location(env, (id unless @once)), env["QUERY_STRING"]))
      end

      def link(document, env, parameters)
        prefix = @frame.prefix(env) unless @frame.base_url.nil? && env["SCRIPT_NAME"].to_s.empty?
        base = "#{prefix}#{@path}#{parameters.rest}"
        document.rendering.link(base) { |total, full| parameters.links(base, total, full) }
      end

      # RFC 9110, section 13.2.1: preconditions do not apply if the response would not be 2xx. An entity tag
      # that matches exactly proves that the record exists; for any other outcome the document is read.
      def precondition(env, document, id, etag)
        return unless env["HTTP_IF_NONE_MATCH"] || env["HTTP_IF_MATCH"]

        outcome = HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
        return outcome if outcome == :proceed || id.nil?

        exact = outcome == :not_modified && env["HTTP_IF_NONE_MATCH"].b.strip != "*"
        exact || document.status == 200 ? outcome : :absent
      end

      # Sends the compressed form of a cached document. Proxies and Rack::Deflater do not compress it again.
      # @return [String] the Vary field
      def encode(rendering, env)
        offered = rendering.codings
        return @vary if offered.empty?

        coding = HTTP::ContentCoding.choose(env["HTTP_ACCEPT_ENCODING"], offered)
        rendering.encode(coding) if coding
        @vary_with_coding
      end

      # @param noted [Hash, nil] Rack's environment, if the response lists its records for proxies
      def answer(document, id, headers, noted)
        return absent(id) if id && document.status == 404

        rendering = document.rendering
        headers.merge!(@frame.purge.headers(rendering, noted, headers["vary"], further: @owner.values.flatten)) if noted
        body = rendering.encoded
        headers.merge!(cache_status(rendering)) if @frame.cache_status
        headers["content-type"] = rendering.media_type
        headers["content-encoding"] = rendering.coding if rendering.coding
        headers["content-length"] = body.bytesize.to_s
        [200, headers, Body.of(body)]
      end

      # @return [Hash{String => String}]
      def cache_status(rendering)
        return {} unless @frame.cache_status && rendering.kept?

        return HIT unless rendering.rendered?

        rendering.written.stored ? MISS : UNSTORED
      end

      def absent(id)
        ErrorDocument.response(404, "there is no #{@resource.definition.type} with the id #{id[0, 100].inspect}", "vary" => @vary)
      end
    end
  end
end
