# frozen_string_literal: true

module Castellan
  module Serve
    # Answers what {Endpoint} does not: changes, relationships and related resources. Frozen.
    #
    # | path                              | methods                    |
    # |-----------------------------------|----------------------------|
    # | `/posts`                          | POST                       |
    # | `/posts/1`                        | PATCH, DELETE              |
    # | `/posts/1/author`                 | GET                        |
    # | `/posts/1/relationships/author`   | GET, PATCH                 |
    # | `/posts/1/relationships/tags`     | GET, PATCH, POST, DELETE   |
    class Routes
      READING = %w[GET HEAD].freeze
      private_constant :READING

      # @param endpoint [Endpoint]
      # @param path [String] of the collection
      def initialize(endpoint, path)
        @endpoint = endpoint
        @writes = Writes.new(endpoint, path)
        @related = Related.new(endpoint, path)
        freeze
      end

      # @param segments [Array<String>] of the path after the collection's
      # @return [Array] Rack's response
      # @raise [BadRequest]
      def call(env, viewer, id = nil, *segments)
        return resource(env, viewer, id) if segments.empty?

        relationship = @endpoint.relationship(segments.last, viewer)
        linkage = segments.size == 2
        return nothing if relationship.nil? || (linkage && segments.first != "relationships")

        linkage ? linkage(env, viewer, id, relationship) : related(env, viewer, id, relationship)
      end

      private

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
        return @related.linkage(env, viewer, id, relationship) if READING.include?(env["REQUEST_METHOD"])

        allowed = @writes.allowed(single: true, relationship: relationship)
        allowed.include?(env["REQUEST_METHOD"]) ? @writes.relate(env, viewer, id, relationship) : not_allowed(allowed)
      end

      def related(env, viewer, id, relationship)
        READING.include?(env["REQUEST_METHOD"]) ? @related.call(env, viewer, id, relationship) : not_allowed([])
      end

      def nothing
        ErrorDocument.response(404, "there is nothing at this path")
      end

      def not_allowed(methods)
        allowed = [*READING, *methods]
        ErrorDocument.response(405, "only #{allowed.join(", ")} are answered here", "allow" => allowed.join(", "))
      end
    end
  end
end
