# frozen_string_literal: true

require "json"

module Castellan
  module Serve
    # Serves the Atomic Operations extension (https://jsonapi.org/ext/atomic): all operations or none.
    #
    #   Castellan.app {
    #     resource PostResource
    #     operations              # POST /operations
    #   }
    #
    # Runs all operations in one transaction. An operation does the same, with the same checks, as the request
    # to the resource's own URL. Frozen.
    class Operations
      EXTENSION = "https://jsonapi.org/ext/atomic"
      MEDIA_TYPE = %(application/vnd.api+json;ext="#{EXTENSION}").freeze
      # The maximum number of operations in one request.
      MOST = 1_000
      CODES = %w[add update remove].freeze
      RELATE = { "add" => :add, "update" => :replace, "remove" => :remove }.freeze
      private_constant :CODES, :RELATE

      # The endpoint of an operation, and the record or relationship.
      Target = Struct.new(:endpoint, :id, :lid, :relationship)
      private_constant :Target

      # @param app [App] finds endpoints by path and by type
      # @param frame [Frame] the application's own query parameters
      def initialize(app, frame)
        @app = app
        @frame = frame
        @negotiation = HTTP::Negotiation.new(extensions: [EXTENSION])
        freeze
      end

      # @return [Array] Rack response: 200 with the results, or 204 if all results are empty
      # @raise [BadRequest]
      def call(env, viewer)
        return ErrorDocument.response(405, "only POST is answered here", "allow" => "POST") unless env["REQUEST_METHOD"] == "POST"

        @negotiation.request_type!(env["CONTENT_TYPE"], extension: EXTENSION)
        @negotiation.response_type!(env["HTTP_ACCEPT"])
        @frame.only_own!(env)
        operations = operations_of(Write::Body.read(env))
        results = Run.new(@app, env, viewer).call(operations)
        return [204, {}, []] if results.all?(&:empty?)

        body = JSON.generate("atomic:results" => results)
        [200, { "content-type" => MEDIA_TYPE, "cache-control" => "no-store", "content-length" => body.bytesize.to_s }, [body]]
      end

      private

      def operations_of(document)
        operations = document["atomic:operations"]
        refuse("the document needs the member atomic:operations, an array") if !operations.is_a?(Array) || operations.empty?
        refuse("the document must not have the member data beside atomic:operations", "/data") if document.key?("data")
        refuse("there are more than #{MOST} operations", "/atomic:operations") if operations.size > MOST
        operations
      end

      def refuse(detail, pointer = "")
        raise BadRequest.new(detail, pointer: pointer, title: "Invalid document")
      end

      # Runs one request and remembers the ids of the records that its operations created, by type and local id.
      class Run
        def initialize(app, env, viewer)
          @app = app
          @env = env
          @viewer = viewer
        end

        # @param operations [Array<Object>] the parsed operations
        # @return [Array<Hash>] the results
        # @raise [BadRequest]
        def call(operations)
          first = writer_of(operations.first, pointer(0))
          Write::Transaction.run(first.models) do
            @local = {}
            operations.each_with_index.map { |operation, index| perform(operation, pointer(index), first) }
          end
        rescue BadRequest => error
          raise @pointer ? error.at(@pointer) : error
        rescue StandardError => error
          raise @current&.mistake(error, "#{@pointer}/data")&.at(@pointer) || error
        end

        private

        def pointer(index)
          "/atomic:operations/#{index}"
        end

        def writer_of(operation, pointer)
          writer(target_of(operation, pointer), pointer)
        end

        def writer(target, pointer)
          writing = target.endpoint.resource.definition.writing
          refuse(pointer, "#{target.endpoint.resource.definition.type} are changed with If-Match alone", 403) if writing.conditional?

          Write::Writer.new(target.endpoint.resource, viewer: @viewer, scope: target.endpoint.scope(@viewer), local: @local || {})
        end

        def perform(operation, pointer, first)
          target = target_of(operation, pointer)
          @pointer = pointer
          @current = writer = writer(target, pointer)
          unless writer.models.same_database?(first.models)
            refuse(pointer,
                   "the operation is on another database than the first; send it by itself")
          end
          return relate(writer, target, operation, pointer) if target.relationship

          case operation["op"]
          when "add" then add(writer, target, operation, pointer)
          when "update" then update(writer, target, operation, pointer)
          else remove(writer, target, operation, pointer)
          end
        end

        # Refuses data: the client has probably left the relationship out, and would delete the owner of its members.
        # Later operations cannot name the record by its lid.
        def remove(writer, target, operation, pointer)
          if !operation["data"].nil? && (operation["ref"] || operation["href"])
            refuse("#{pointer}/data", "remove without a relationship deletes the resource and takes no data")
          end
          record = record(writer, target, pointer)
          created = locals(writer, record)
          writer.delete(record)
          @local = @local.except(*created)
          {}
        end

        # @return [Array<(String, String)>] type and lid of the record, if an operation before has created it
        def locals(writer, record)
          id = writer.id_of(record)
          @local.select { |(type, _), other| type == writer.definition.type && other == id }.keys
        end

        def add(writer, target, operation, pointer)
          refuse("#{pointer}/ref", "add creates a resource or changes a to-many relationship; leave the id out") if target.id || target.lid
          data = operation["data"]
          local = [data["type"], data["lid"]] if data.is_a?(Hash) && data["lid"]
          refuse("#{pointer}/data/lid", "an operation before has created a #{local.first} with this lid; choose another") if @local[local]
          id = writer.id_of(writer.create(data, "#{pointer}/data"))
          @local[local] = id if local
          rendered(writer, target, id)
        end

        def update(writer, target, operation, pointer)
          record = record(writer, target, pointer)
          id = writer.id_of(record)
          created = locals(writer, record)
          data = operation["data"]
          data = { **data.except("lid"), "id" => id } if data.is_a?(Hash) && created.include?([data["type"], data["lid"]])
          id = writer.id_of(writer.update(record, id, data, "#{pointer}/data")) # an attribute may be the id
          created.each { |local| @local[local] = id }
          rendered(writer, target, id)
        end

        def relate(writer, target, operation, pointer)
          if !target.relationship.to_many? && operation["op"] != "update"
            refuse(pointer,
                   "#{operation["op"]} changes to-many relationships only")
          end
          refuse(pointer, "the operation needs the member data") unless operation.key?("data")

          record = record(writer, target, pointer)
          no_relationship(writer.definition, target.relationship.key, pointer) \
            unless target.endpoint.relates?(@viewer, writer.id_of(record), target.relationship)

          writer.relate(record, target.relationship, RELATE.fetch(operation["op"]), operation["data"], "#{pointer}/data")
          {}
        end

        def record(writer, target, pointer)
          refuse(pointer, "the operation needs a ref or a href that names one resource") unless target.id || target.lid
          id = target.id || @local[[writer.definition.type, target.lid]] ||
               refuse(pointer, "no operation before has created a #{writer.definition.type} with the lid " \
                               "#{ClientText.shown(target.lid).inspect}", 404)
          writer.find(id, pointer: pointer)
        end

        def rendered(writer, target, id)
          document = JSON.parse(target.endpoint.result(@env, @viewer, id).to_json, allow_duplicate_key: true)
          { "data" => document["data"] || raise(writer.unseen) }
        end

        def target_of(operation, pointer)
          refuse(pointer, "must be an object, got #{Write.kind_of(operation)}") unless operation.is_a?(Hash)
          refuse("#{pointer}/op", "op must be add, update or remove") unless CODES.include?(operation["op"])
          refuse(pointer, "write ref or href, not both") if operation.key?("ref") && operation.key?("href")
          return href(operation, "#{pointer}/href") if operation.key?("href")
          return ref(operation["ref"], "#{pointer}/ref") if operation.key?("ref")

          data = operation["data"]
          refuse("#{pointer}/data", "the operation needs a ref, a href or a resource object as data") unless data.is_a?(Hash)
          target = ref({ "type" => data["type"], **data.slice("id", "lid").compact }, "#{pointer}/data")
          operation["op"] == "add" ? Target.new(target.endpoint) : target
        end

        def ref(ref, pointer)
          valid = ref.is_a?(Hash) && %w[type id lid relationship].all? { |name| !ref.key?(name) || ref[name].is_a?(String) }
          refuse(pointer, "must be an object with a type, an id or lid, and perhaps a relationship") unless valid && ref["type"]
          endpoint = @app.endpoint_of(ref["type"]) or
            refuse("#{pointer}/type", "there is no type #{ClientText.shown(ref["type"]).inspect}", 404)
          Target.new(endpoint, ref["id"], ref["lid"],
                     ref["relationship"] && relationship(endpoint, ref["relationship"], "#{pointer}/relationship"))
        end

        # The URL may be relative or absolute.
        def href(operation, pointer)
          href = operation["href"]
          refuse(pointer, "must be a string with the path of a resource") unless href.is_a?(String) && href.size < 2_000
          refuse(pointer, "must have no query parameters") if href.include?("?")
          path = href.sub(%r{\Ahttps?://[^/?#]+}i, "")[/\A[^?#]*/]
          name = ClientText.utf8(@env["SCRIPT_NAME"].to_s)
          path = path.delete_prefix([name, Frame.uri(name)].find { |prefix| path.start_with?(prefix) }.to_s)
          endpoint, id, *rest = @app.route(ClientText.utf8(path))
          endpoint = nil if endpoint&.several_tables?
          endpoint = typed(endpoint, id, operation["data"]) if endpoint&.types&.any?
          member = rest.last if rest.size == 2 && rest.first == "relationships"
          refuse(pointer, "there is nothing at #{ClientText.shown(href).inspect}", 404) unless endpoint && (rest.empty? || member)

          Target.new(endpoint, id, nil, member && relationship(endpoint, member, pointer))
        end

        # For a collection of several types, the record or the resource object determines the type.
        def typed(endpoint, id, data)
          id ? endpoint.of_record(@viewer, id) : endpoint.of_type((data["type"] if data.is_a?(Hash)))
        end

        def relationship(endpoint, member, pointer)
          endpoint.relationship(member, @viewer) || no_relationship(endpoint.resource.definition, member, pointer)
        end

        def no_relationship(definition, member, pointer)
          refuse(pointer, "#{definition.type} has no relationship #{ClientText.shown(member).inspect}", 404)
        end

        def refuse(pointer, detail, status = 400)
          raise BadRequest.new(detail, pointer: pointer, status: status, title: status == 404 ? "Not found" : "Invalid operation")
        end
      end
      private_constant :Run
    end
  end
end
