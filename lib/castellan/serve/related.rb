# frozen_string_literal: true

module Castellan
  module Serve
    # Serves related resources, `/posts/1/author`, and linkage, `/posts/1/relationships/author`. Frozen.
    # See JSON:API 1.1, "Fetching Resources" and "Fetching Relationships".
    class Related
      # @param endpoint [Endpoint]
      # @param path [String] the path of the collection
      def initialize(endpoint, path)
        @endpoint = endpoint
        @resource = endpoint.resource
        @definition = @resource.definition
        @path = path
        freeze
      end

      # @return [Array] Rack response with the related resources; null for an empty to-one relationship
      # @raise [BadRequest] 404 if the record does not exist, or clients may not include the relationship
      def call(env, viewer, id, relationship)
        nothing unless relationship.related?

        path = "#{@path}/#{ERB::Util.url_encode(id)}/#{ERB::Util.url_encode(relationship.key)}"
        return one(env, viewer, relationship, path, id) unless relationship.to_many?

        writer = Write::Writer.new(@resource, viewer: viewer, scope: @endpoint.scope(viewer))
        record = writer.visible(id) or absent(id)
        nothing unless @endpoint.relates?(viewer, id, relationship)

        scope = writer.models.related(record, relationship.association_name)
        @endpoint.related(relationship.resource, path, scope, id).call(env, viewer, nil)
      end

      # @return [Array] Rack response with the linkage
      # @raise [BadRequest]
      def linkage(env, viewer, id, relationship)
        @endpoint.negotiate(env)
        @endpoint.only_own!(env)

        respond(env, linked(viewer, id, relationship))
      end

      # @raise [BadRequest] 404
      def absent(id)
        raise BadRequest.new("there is no #{@definition.type} with the id #{ClientText.shown(id, 100).inspect}", status: 404,
                                                                                                                 title: "Not found")
      end

      private

      # @return [Hash] the relationship in the record's document
      def linked(viewer, id, relationship)
        document = @endpoint.linkage(viewer, id, relationship)
        absent(id) if document.status == 404
        JSON.parse(document.to_json).dig("data", "relationships", relationship.key) || nothing
      end

      # Answers alike for an empty relationship and for a hidden record, also to a wrong query.
      def one(env, viewer, relationship, path, id)
        found = linked(viewer, id, relationship)["data"]
        definition = definition_of(relationship, found["type"]) if found
        response = seen(env, viewer, definition, @endpoint.related(definition.resource, path, :all, id), found["id"]) if definition
        return response if response

        endpoint = @endpoint.related(relationship.resource, path, :all, id)
        endpoint.negotiate(env)
        endpoint.check_query(env) if relationship.definitions.one?
        json_api = endpoint.media_type == HTTP::Negotiation::JSON_API
        respond(env, json_api ? { "data" => nil, **endpoint.members_beside_null(env) } : nil, endpoint.media_type)
      end

      # @return [Array, nil] nil if the viewer may not see the record
      def seen(env, viewer, definition, endpoint, related_id)
        response = endpoint.call(env, viewer, related_id)
        response unless response.first == 404
      rescue BadRequest
        raise if Write::Writer.new(definition.resource, viewer: viewer).visible(related_id)
      end

      def definition_of(relationship, type)
        definitions = relationship.definitions
        definitions.one? ? definitions.first : definitions.find { |one| [one, *one.types].any? { |other| other.type == type } }
      end

      def respond(env, document, type = @endpoint.media_type)
        body = JSON.generate(document)
        etag = Document::Rendering.digest(body)
        headers = { "etag" => etag, **@endpoint.policy }
        decision = HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
        return Endpoint.not_modified(headers) if decision == :not_modified

        [200, headers.merge("content-type" => type, "content-length" => body.bytesize.to_s), [body]]
      end

      def nothing
        raise BadRequest.new("there is nothing at this path", status: 404, title: "Not found")
      end
    end
  end
end
