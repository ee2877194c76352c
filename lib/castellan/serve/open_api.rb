# frozen_string_literal: true

require "digest/sha2"
require "json"
require_relative "schemas"

module Castellan
  module Serve
    # Describes an application in OpenAPI 3.1, based on its declarations.
    #
    #   Castellan.app {
    #     openapi title: "Library", version: "1.0"   # GET /openapi.json
    #     resource PostResource
    #   }
    #
    # The description depends on the viewer: it leaves out members that the viewer may not see or write. With
    # `authenticate`, the response to a client without a viewer is 401.
    class OpenApi
      Mounted = Struct.new(:path, :definition, :endpoint)
      PARAMETERS = { "id" => { "name" => "id", "in" => "path", "required" => true, "schema" => { "type" => "string" } } }.freeze
      ERROR = {
        "type" => "object", "required" => ["errors"], "properties" => { "errors" => { "type" => "array", "items" => {
          "type" => "object", "properties" => {
            "status" => { "type" => "string" }, "title" => { "type" => "string" }, "detail" => { "type" => "string" },
            "code" => { "type" => "string" }, "links" => Schemas::LINKS, "meta" => Schemas::OBJECT,
            "source" => { "type" => "object", "properties" => %w[pointer parameter header].to_h { |name| [name, { "type" => "string" }] } }
          }
        } } }
      }.freeze
      PROBLEMS = {
        "BadRequest" => "The request is malformed, or asks for what is not declared.", "Unauthorized" => "A valid token is needed.",
        "Forbidden" => "The viewer may not do this.", "NotFound" => "There is no such resource.",
        "Conflict" => "The request conflicts with what is stored.", "Unprocessable" => "A value is not valid.",
        "Error" => "Any other error, such as 406, 415, 429 or 503."
      }.freeze
      STATUSES = { "400" => "BadRequest", "401" => "Unauthorized", "403" => "Forbidden", "404" => "NotFound", "409" => "Conflict",
                   "422" => "Unprocessable", "default" => "Error" }.freeze
      PLAIN = /[^A-Za-z0-9._-]/
      WRITE_PROBLEMS = %w[400 403 404 409 422].freeze
      private_constant :Mounted, :PARAMETERS, :ERROR, :PROBLEMS, :STATUSES, :WRITE_PROBLEMS, :PLAIN

      # @return [String] the path of the description
      attr_reader :path

      # @param title [String]
      # @param version [String] the version of the API
      # @param at [String] the path of the description
      def initialize(title: "API", version: "1.0", at: "openapi.json")
        @title = title
        @version = version
        @path = "/#{at}".squeeze("/")
        freeze
      end

      # @param env [Hash] Rack's environment
      # @param viewer [Object, nil]
      # @param endpoints [Hash{String => Endpoint}] by path
      # @param operations_path [String, nil] the path of the Atomic Operations extension
      # @param authenticated [Boolean]
      # @param frame [Frame] the base of links, and the application's own query parameters
      # @return [Array] Rack's response
      def call(env, viewer, endpoints, operations_path:, authenticated:, frame:)
        return ErrorDocument.not_allowed unless App::ALLOWED.include?(env["REQUEST_METHOD"])

        description = Description.new(viewer, endpoints, operations_path, authenticated, frame.own)
        body = JSON.generate(description.to_h(@title, @version, frame.prefix(env).to_s))
        etag = %("#{Digest::SHA256.hexdigest(body)[0, 32]}")
        headers = { "etag" => etag, "cache-control" => authenticated ? "private, no-cache" : "public, no-cache" }
        headers["vary"] = "authorization" if authenticated
        decision = HTTP::Preconditions.evaluate(method: env["REQUEST_METHOD"], headers: env, etag: etag)
        return Endpoint.not_modified(headers) if decision == :not_modified

        [200, headers.merge("content-type" => "application/json", "content-length" => body.bytesize.to_s), [body]]
      end

      # Builds the document for one viewer.
      class Description
        def initialize(viewer, endpoints, operations_path, authenticated, own)
          @viewer = viewer
          @schemas = Schemas.new(viewer: viewer)
          @operations_path = operations_path
          @authenticated = authenticated
          @own = own.map { |name, values| parameter(name, { "type" => "string", "enum" => values }.compact) }
          @mounted = endpoints.map { |path, endpoint| Mounted.new(path, endpoint.resource.definition, endpoint) }
          @definitions = @mounted.each_with_object([]) { |one, found| reach(one.definition, found) }
          @names = names
        end

        def to_h(title, version, prefix)
          document = { "openapi" => "3.1.0", "info" => { "title" => title, "version" => version },
                       "servers" => [{ "url" => prefix.empty? ? "/" : prefix }], "paths" => paths, "components" => components }
          document["security"] = [{ "bearer" => [] }] if @authenticated
          document
        end

        private

        def reach(definition, found)
          return definition.types.each { |type| reach(type, found) } if definition.several_types?
          return if found.include?(definition)

          found << definition
          @schemas.visible(definition, definition.relationships).each { |one| one.definitions.each { |other| reach(other, found) } }
        end

        # Two resources may have the same type, and two types may differ only in characters that a name cannot
        # have.
        def names
          @definitions.each_with_object({}.compare_by_identity) do |definition, found|
            plain = definition.type.gsub(PLAIN, "_")
            number = found.values.count { |name| name == plain || name.start_with?("#{plain}-") }
            found[definition] = number.zero? ? plain : "#{plain}-#{number + 1}"
          end
        end

        def components
          included = @names.each_value.map { |name| { "$ref" => "#/components/schemas/#{name}" } }
          schemas = { "error" => ERROR, "included" => { "anyOf" => included } }
          @definitions.each do |definition|
            schemas[@names[definition]] = @schemas.read(definition)
            Resource::Writing::ACTIONS.each do |action|
              written = @schemas.write(definition, action) and schemas["#{@names[definition]}.#{action}"] = written
            end
          end
          problems = PROBLEMS.transform_values { |text| response(text, { "$ref" => "#/components/schemas/error" }) }
          { "schemas" => schemas, "responses" => problems, "parameters" => PARAMETERS,
            **(@authenticated ? { "securitySchemes" => { "bearer" => { "type" => "http", "scheme" => "bearer" } } } : {}) }
        end

        def paths
          found = @mounted.each_with_object({}) do |one, paths|
            paths[one.path] = collection(one)
            next if one.definition.several_tables?

            paths["#{one.path}/{id}"] = single(one)
            served(one).each { |relationship| related(paths, one, relationship) }
          end
          @operations_path ? found.merge(@operations_path => { "post" => operations }) : found
        end

        def collection(one)
          { "get" => operation("list", one, parameters: query(one, list: true),
                                            ok: ["200", many(one.definition)], problems: %w[400]),
            "post" => (written("create", one, :create, "201") if writable?(one, :create)) }.compact
        end

        def single(one)
          { "parameters" => [id], "get" => operation("read", one, parameters: query(one, list: false),
                                                                  ok: ["200", document(ref(one.definition))], problems: %w[400 404]),
            "patch" => (written("update", one, :update, "200") if writable?(one, :update)),
            "delete" => (operation("delete", one, parameters: @own, ok: ["204"], problems: WRITE_PROBLEMS) if deletable?(one)) }.compact
        end

        def writable?(one, action)
          !one.definition.several_tables? && one.definition.written_as.any? { |definition| @schemas.writable(definition, action).any? }
        end

        def deletable?(one)
          one.definition.written_as.any? { |definition| definition.writing.any?(:delete) }
        end

        # If types share a name, uses the first: subtypes inherit the members of their superclass.
        def relationships(definition)
          definition.written_as.flat_map { |type| @schemas.visible(type, type.relationships) }.uniq(&:key)
        end

        # @return [Array<Resource::Relationship>] without those that the fixed parameters of the endpoint leave out
        def served(one)
          relationships(one.definition).select { |relationship| one.endpoint.nil? || one.endpoint.serves?(relationship.key, @viewer) }
        end

        def written(name, one, action, status)
          definitions = one.definition.written_as.select { |definition| @schemas.writable(definition, action).any? }
          body = document(any_of(definitions.map { |definition| { "$ref" => "#/components/schemas/#{@names[definition]}.#{action}" } }))
          operation(name, one, parameters: query(one, list: false), body: body, ok: [status, document(ref(one.definition))],
                               problems: WRITE_PROBLEMS)
        end

        def related(paths, one, relationship)
          path = "#{one.path}/{id}"
          key = ERB::Util.url_encode(relationship.key)
          paths["#{path}/#{key}"] = { "parameters" => [id], "get" => listed(one, relationship) } if relationship.related?
          linkage = document(@schemas.linkage(relationship))
          paths["#{path}/relationships/#{key}"] = {
            "parameters" => [id], "get" => operation("linkage", one, relationship: relationship, parameters: @own, ok: ["200", linkage],
                                                                     problems: %w[400 404]),
            **changes(one, relationship, linkage)
          }
        end

        # A client does not know which of several types a related record has, and what it may ask for.
        def listed(one, relationship)
          data = relationship.to_many? ? many(relationship.resource.definition) : document(one_of(relationship))
          asked = relationship.definitions.one? || relationship.to_many?
          parameters = asked ? query(Mounted.new(nil, relationship.resource.definition), list: relationship.to_many?) : @own
          operation("related", one, relationship: relationship, parameters: parameters, ok: ["200", data], problems: %w[400 404],
                                    type: Document::MEDIA_TYPES.fetch(relationship.resource.definition.document_format))
        end

        def changes(one, relationship, linkage)
          return {} if one.definition.written_as.none? { |type| @schemas.writable(type, :update).include?(relationship.name) }

          (relationship.to_many? ? %w[patch post delete] : %w[patch]).to_h do |method|
            [method, operation("#{method}_linkage", one, relationship: relationship, parameters: @own, body: linkage,
                                                         ok: ["200", linkage], empty: true, problems: WRITE_PROBLEMS)]
          end
        end

        def operation(name, one, ok:, problems:, parameters: [], body: nil, relationship: nil, empty: false, type: one.endpoint.media_type)
          status, schema = ok
          # The nested format has no schema; linkage has that of JSON:API.
          schema &&= {} unless type == HTTP::Negotiation::JSON_API || (relationship && name != "related")
          content = schema ? response("Success", schema, type) : { "description" => "Success" }
          { "operationId" => [name, one.path.delete_prefix("/").gsub(PLAIN, "_"), relationship&.key].compact.join("-"),
            "tags" => [one.definition.type], **(parameters.empty? ? {} : { "parameters" => parameters }),
            **(body ? { "requestBody" => { "required" => true, "content" => content(body, type) } } : {}),
            "responses" => { status => content, **(empty ? { "204" => { "description" => "Success" } } : {}), **problems(problems) } }
        end

        def problems(codes)
          codes = [*codes, *("401" if @authenticated), "default"].sort
          codes.to_h { |code| [code, { "$ref" => "#/components/responses/#{STATUSES.fetch(code)}" }] }
        end

        def operations
          body = { "type" => "object", "required" => ["atomic:operations"],
                   "properties" => { "atomic:operations" => { "type" => "array", "items" => Schemas::OBJECT } } }
          result = { "type" => "object", "properties" => { "atomic:results" => { "type" => "array", "items" => Schemas::OBJECT } } }
          { "operationId" => "operations", **(@own.empty? ? {} : { "parameters" => @own }),
            "requestBody" => { "required" => true, "content" => { Operations::MEDIA_TYPE => { "schema" => body } } },
            "responses" => { "200" => { "description" => "Success", "content" => { Operations::MEDIA_TYPE => { "schema" => result } } },
                             "204" => { "description" => "Success" }, **problems(WRITE_PROBLEMS) } }
        end

        def query(one, list:)
          definition = one.definition
          hidden = definition.own_hidden_from(@viewer)
          include = one.endpoint&.fixes?(:include) ? [] : served(one).select(&:includable?).map(&:key)
          found = [*@own, *(definition.written_as.map { |type| fields(type) } unless one.endpoint&.fixes?(:fields))]
          found << parameter("include", { "type" => "string" }, "Paths of #{include.join(", ")}") if include.any?
          return found unless list

          sorts = definition.open_sorts(hidden).map { |name| named(definition, name) }.flat_map { |name| [name, "-#{name}"] }
          found << names_of("sort", sorts) if sorts.any?
          found.concat(definition.filters.slice(*definition.open_filters(hidden)).map { |name, by| filter(named(definition, name), by) })
          found.concat(pages(definition.paging)) if definition.paging
          found
        end

        def named(definition, name) = Resource::KeyTransform.call(name, definition.transform)

        def fields(type)
          members = [*@schemas.visible(type, type.attributes), *@schemas.visible(type, type.relationships)].map(&:key)
          names_of("fields[#{type.type}]", members)
        end

        def filter(name, by)
          operators = "Values divided by commas, or an operator: filter[#{name}][gte]" unless by.is_a?(Proc)
          parameter("filter[#{name}]", { "type" => "string" }, operators)
        end

        def pages(paging)
          places = paging.kind == :cursor ? { "after" => { "type" => "string" }, "before" => { "type" => "string" } } : nil
          { **(places || { "number" => { "type" => "integer", "minimum" => 1 } }),
            "size" => { "type" => "integer", "minimum" => 1, "maximum" => paging.max_size, "default" => paging.size } }
            .map { |name, schema| parameter("page[#{name}]", schema) }
        end

        def names_of(name, values)
          schema = { "type" => "array", "items" => { "type" => "string", "enum" => values } }
          { **parameter(name, schema), "style" => "form", "explode" => false }
        end

        def parameter(name, schema, description = nil)
          { "name" => name, "in" => "query", "description" => description, "schema" => schema }.compact
        end

        def id
          { "$ref" => "#/components/parameters/id" }
        end

        def ref(definition)
          any_of(definition.written_as.map { |type| { "$ref" => "#/components/schemas/#{@names[type]}" } })
        end

        def any_of(schemas)
          schemas.one? ? schemas.first : { "oneOf" => schemas }
        end

        def one_of(relationship)
          { "oneOf" => [*relationship.definitions.map { |definition| ref(definition) }, { "type" => "null" }] }
        end

        def many(definition)
          document({ "type" => "array", "items" => ref(definition) })
        end

        def document(data)
          { "type" => "object", "required" => ["data"], "properties" => {
            "data" => data, "included" => { "type" => "array", "items" => { "$ref" => "#/components/schemas/included" } },
            "links" => Schemas::LINKS, "meta" => Schemas::OBJECT
          } }
        end

        def response(text, schema, type = HTTP::Negotiation::JSON_API)
          { "description" => text, "content" => content(schema, type) }
        end

        def content(schema, type)
          { type => { "schema" => schema } }
        end
      end
      private_constant :Description
    end
  end
end
