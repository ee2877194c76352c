# frozen_string_literal: true

module Castellan
  module Serve
    # Serves POST, PATCH and DELETE of a resource and of its relationships. Frozen.
    #
    # See JSON:API 1.1, "Creating, Updating and Deleting Resources". A request is one transaction. The
    # response is rendered within it, so it shows exactly what was written.
    class Writes
      OPERATIONS = { "PATCH" => :replace, "POST" => :add, "DELETE" => :remove }.freeze
      private_constant :OPERATIONS

      # @param endpoint [Endpoint]
      # @param documents [Endpoint] renders the documents of responses; for a record of several types, the
      #   collection's endpoint
      def initialize(endpoint, documents: endpoint)
        @endpoint = endpoint
        @documents = documents
        @resource = endpoint.resource
        @definition = @resource.definition
        freeze
      end

      # @param relationship [Resource::Relationship, nil] a relationship of the resource
      # @param single [Boolean] whether the URL is that of one record
      # @return [Array<String>] the methods that may change something at this URL
      def allowed(single:, relationship: nil)
        writing = @definition.writing
        return relationship_methods(relationship) if relationship
        return writing.any?(:create) ? ["POST"] : [] unless single

        [*("PATCH" if writing.any?(:update)), *("DELETE" if writing.any?(:delete))]
      end

      # @param data [Object] the parsed resource object
      # @return [Array] Rack response: 201 with the document and its location
      # @raise [BadRequest]
      def create(env, viewer, data = primary_data(env))
        @endpoint.only_own!(env, "include", "fields")
        id, document = run(viewer) do |writer|
          id = writer.id_of(writer.create(data, "/data"))
          [id, rendered(writer, env, viewer, id)]
        end
        @endpoint.written(document, 201, "location" => own_link(document) || @endpoint.location(env, id))
      end

      # @return [Array] Rack response: 200 with the document, or 412 if If-Match does not match the record
      # @raise [BadRequest]
      def update(env, viewer, id)
        data = primary_data(env)
        @endpoint.only_own!(env, "include", "fields")
        document = run(viewer) do |writer|
          record = found(writer, env, viewer, id)
          rendered(writer, env, viewer, writer.id_of(writer.update(record, id, data, "/data")))
        end
        @endpoint.written(document, 200)
      end

      # @return [Array] Rack response: 204
      # @raise [BadRequest]
      def delete(env, viewer, id)
        refuse_form(env)
        @endpoint.negotiate(env)
        @endpoint.only_own!(env)
        run(viewer) { |writer| writer.delete(found(writer, env, viewer, id)) }
        [204, {}, []]
      end

      # @param relationship [Resource::Relationship]
      # @return [Array] Rack response: 204, or 200 with the linkage if it is not what the client asked for
      # @raise [BadRequest]
      def relate(env, viewer, id, relationship)
        data = primary_data(env)
        @endpoint.only_own!(env)
        linkage = run(viewer) do |writer|
          record = found(writer, env, viewer, id, relationship)
          raise BadRequest.new("there is nothing at this path", status: 404, title: "Not found") \
            unless @endpoint.relates?(viewer, id, relationship)

          asked = writer.relate(record, relationship, OPERATIONS.fetch(env["REQUEST_METHOD"]), data, "/data")
          linkage_of(viewer, id, relationship) unless asked
        end
        linkage ? respond(linkage) : [204, {}, []]
      end

      # @return [Object] the member `data` of the request's document
      # @raise [BadRequest]
      def primary_data(env)
        @endpoint.negotiate(env, body: true)
        document = Write::Body.read(env)
        return document["data"] if document.key?("data")

        raise BadRequest.new("the document needs the member data", pointer: "", title: "Invalid document")
      end

      private

      # Other requests that write need a media type that no HTML form can send. Rack::MethodOverride, which is part of
      # Rails, makes a DELETE of a form, so that any website could send one with the cookies of its visitors.
      def refuse_form(env)
        return unless env["rack.methodoverride.original_method"] && env["HTTP_X_HTTP_METHOD_OVERRIDE"].nil?

        raise BadRequest.new("a form cannot delete a record; send DELETE, or the header X-HTTP-Method-Override",
                             status: 415, title: "Unsupported media type")
      end

      def linkage_of(viewer, id, relationship)
        JSON.parse(@endpoint.linkage(viewer, id, relationship).to_json).dig("data", "relationships", relationship.key)
      end

      def respond(linkage)
        body = JSON.generate(linkage)
        headers = { "content-type" => @endpoint.media_type, "cache-control" => "no-store" }
        [200, { **headers, "content-length" => body.bytesize.to_s }, [body]]
      end

      # Location is the `self` link of the resource object, if it has one (JSON:API 1.1, "Creating
      # Resources").
      def own_link(document)
        JSON.parse(document.to_json, allow_duplicate_key: true).dig("data", "links", "self") if @definition.links.key?(:self)
      end

      def relationship_methods(relationship)
        return [] unless @definition.writing.rules.any? { |rule| rule.names.include?(relationship.name) && rule.actions.include?(:update) }

        relationship.to_many? ? %w[PATCH POST DELETE] : ["PATCH"]
      end

      def run(viewer)
        writer = Write::Writer.new(@resource, viewer: viewer, scope: @endpoint.scope(viewer))
        Write::Transaction.run(writer.models) { yield writer }
      rescue BadRequest
        raise
      rescue StandardError => error
        raise (writer && writer.mistake(error, "/data")) || error
      end

      # Locks the row before it compares the entity tags, so that of two clients with the same tag only one
      # can write (RFC 9110, section 13.1.1).
      # At the URL of a relationship, clients may send the tag of its linkage or that of the record.
      def found(writer, env, viewer, id, relationship = nil)
        record = writer.find(id)
        if env["HTTP_IF_MATCH"].nil? && @definition.writing.conditional?
          raise BadRequest.new("send If-Match with the ETag of the document that you read", status: 428, header: "If-Match",
                                                                                            title: "Precondition required")
        end
        return record unless env["HTTP_IF_MATCH"] || env["HTTP_IF_NONE_MATCH"]

        etags = [@documents.document(env, viewer, id, keeper: nil).etag]
        etags << Document::Rendering.digest(JSON.generate(linkage_of(viewer, id, relationship))) if relationship
        wanted = etags.map { |etag| HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag) }
        return record if env["HTTP_IF_MATCH"] ? wanted.include?(:proceed) : wanted.all?(:proceed)

        raise BadRequest.new("the record is not the one that the request names; read it again", status: 412, title: "Precondition failed")
      end

      # @return [Document] rendered while the transaction is open
      # @raise [BadRequest] 403 if the model's default scope hides the record
      def rendered(writer, env, viewer, id)
        document = @documents.document(env, viewer, id, keeper: nil).tap(&:to_json)
        document.status == 404 ? raise(writer.unseen) : document
      end
    end
  end
end
