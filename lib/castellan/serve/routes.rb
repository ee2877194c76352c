# frozen_string_literal: true

module Castellan
  module Serve
    # Serves changes, relationships and related resources; {Endpoint} serves the other requests. Frozen.
    #
    # | path                              | methods                    |
    # |-----------------------------------|----------------------------|
    # | `/posts`                          | POST                       |
    # | `/posts/1`                        | PATCH, DELETE              |
    # | `/posts/1/author`                 | GET                        |
    # | `/posts/1/relationships/author`   | GET, PATCH                 |
    # | `/posts/1/relationships/tags`     | GET, PATCH, POST, DELETE   |
    class Routes
      # @param endpoint [Endpoint]
      # @param path [String] the path of the collection
      # @param documents [Endpoint] renders the documents of responses
      def initialize(endpoint, path, documents: endpoint)
        @endpoint = endpoint
        @writes = Writes.new(endpoint, documents: documents)
        @related = Related.new(endpoint, path)
        @types = endpoint.types.to_h { |type| [type, Routes.new(type, path, documents: endpoint)] }.compare_by_identity.freeze
        freeze
      end

      # @param segments [Array<String>] the segments of the path after the id
      # @return [Array] Rack's response
      # @raise [BadRequest]
      def call(env, viewer, id = nil, *segments)
        return of_types(env, viewer, id, segments) if @types.any?
        return resource(env, viewer, id) if segments.empty?

        relationship = @endpoint.relationship(segments.last, viewer)
        linkage = segments.size == 2
        return nothing if relationship.nil? || (linkage && segments.first != "relationships")

        linkage ? linkage(env, viewer, id, relationship) : related(env, viewer, id, relationship)
      end

      # Creates a record of the type in the document.
      # @param data [Object] the parsed resource object
      # @return [Array] Rack's response
      # @raise [BadRequest]
      def create(env, viewer, data)
        @writes.allowed(single: false).any? ? @writes.create(env, viewer, data) : not_allowed([])
      end

      protected

      # @return [Writes]
      attr_reader :writes

      private

      # The type of the record determines its relationships and what may be changed.
      def of_types(env, viewer, id, segments)
        return create_one(env, viewer) if id.nil?

        endpoint = @endpoint.of_record(viewer, id) or @related.absent(id)
        @types.fetch(endpoint).call(env, viewer, id, *segments)
      end

      def create_one(env, viewer)
        methods = @types.each_value.flat_map { |routes| routes.writes.allowed(single: false) }.uniq
        return not_allowed(methods) unless methods.include?(env["REQUEST_METHOD"])

        data = @writes.primary_data(env)
        type = data["type"] if data.is_a?(Hash)
        endpoint = @endpoint.of_type(type) || refuse_type(type)
        @types.fetch(endpoint).create(env, viewer, data)
      end

      def refuse_type(type)
        types = @endpoint.types.map { |endpoint| endpoint.resource.definition.type.inspect }.join(" or ")
        raise BadRequest.new("type must be #{types}, got #{type.is_a?(String) ? ClientText.shown(type).inspect : Write.kind_of(type)}",
                             pointer: "/data/type", status: type.is_a?(String) ? 409 : 400, title: "Conflict")
      end

      def resource(env, viewer, id)
        allowed = @writes.allowed(single: !id.nil?)
        return not_allowed(allowed) unless allowed.include?(env["REQUEST_METHOD"])

        case env["REQUEST_METHOD"]
        when "POST" then @writes.create(env, viewer)
        when "PATCH" then @writes.update(env, viewer, id)
        else @writes.delete(env, viewer, id)
        end
      end

      def linkage(env, viewer, id, relationship)
        return @related.linkage(env, viewer, id, relationship) if App::ALLOWED.include?(env["REQUEST_METHOD"])

        allowed = @writes.allowed(single: true, relationship: relationship)
        allowed.include?(env["REQUEST_METHOD"]) ? @writes.relate(env, viewer, id, relationship) : not_allowed(allowed)
      end

      def related(env, viewer, id, relationship)
        App::ALLOWED.include?(env["REQUEST_METHOD"]) ? @related.call(env, viewer, id, relationship) : not_allowed([])
      end

      def nothing
        ErrorDocument.response(404, "there is nothing at this path")
      end

      def not_allowed(methods)
        ErrorDocument.not_allowed([*App::ALLOWED, *methods])
      end
    end
  end
end
