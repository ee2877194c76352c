# frozen_string_literal: true

module Castellan
  module Write
    # Checks a client's resource object and converts it to the values to assign.
    #
    #   ResourceObject.new(definition, :create, viewer: viewer, linkage: linkage).values(data, "/data")
    #   # => { title: "Hello", author: #<User id: 7> }
    #
    # Collects mistakes, at most {MOST_MISTAKES}, before it raises. Ignores members that the format does not
    # define (JSON:API 1.1, "Document Structure").
    class ResourceObject
      # More would let a client make a response much longer than its request.
      MOST_MISTAKES = 100

      # @param definition [Resource::Definition]
      # @param action [Symbol] :create or :update
      # @param linkage [LinkedRecords]
      # @param models [ActiveRecordModels, SequelModels]
      # @param hidden [Array<Symbol>] the members that an `if:` hides in the record's row
      def initialize(definition, action, viewer:, linkage:, models:, hidden: [])
        @definition = definition
        @action = action
        @hidden = definition.hidden_from(viewer) | hidden
        @writable = definition.writing.names(action, viewer) - @hidden
        @linkage = linkage
        @models = models
        @mistakes = []
        @unread = []
      end

      # @return [Array<String>] JSON pointers to values with a type that only the database can check
      attr_reader :unread

      # @param data [Object] the parsed resource object
      # @param pointer [String] the JSON pointer to the resource object
      # @param id [String, nil] the id in the URL
      # @return [Hash{Symbol => Object}] the values by attribute and association of the model
      # @raise [InvalidDocument]
      def values(data, pointer, id: nil)
        data.is_a?(Hash) or raise(InvalidDocument, [mistake(pointer, "must be a resource object, got #{Write.kind_of(data)}")])
        identity = identity(data, pointer, id)
        values = identity.merge(attributes(data, "#{pointer}/attributes"), relationships(data, "#{pointer}/relationships"))
        raise InvalidDocument, @mistakes if @mistakes.any?

        values
      end

      private

      # Checks id and type (JSON:API 1.1, "Creating Resources" and "Updating Resources").
      def identity(data, pointer, id)
        type = data["type"]
        refuse("#{pointer}/type", "must be #{@definition.type.inspect}, got #{shown(type)}", status: type.is_a?(String) ? 409 : 400) \
          unless type == @definition.type
        given = data["id"]
        refuse("#{pointer}/lid", "must be a string, got #{Write.kind_of(data["lid"])}") if data.key?("lid") && !data["lid"].is_a?(String)
        return given_id(given, pointer) if @action == :create

        if given != id
          refuse("#{pointer}/id", "must be #{id.inspect} as in the URL, got #{shown(given)}",
                 status: given.is_a?(String) ? 409 : 400)
        end
        {}
      end

      # Ember Data's `serializeResources` writes a null id into a new record.
      def given_id(given, pointer)
        return {} if given.nil?
        return refuse("#{pointer}/id", "must be a string, got #{Write.kind_of(given)}") || {} unless given.is_a?(String)

        column = @definition.id_column
        unless @writable.include?(:id) && column.is_a?(Symbol)
          return refuse("#{pointer}/id", "cannot be chosen by clients", status: 403, title: "Forbidden") || {}
        end

        { column => typed_id(column, given, "#{pointer}/id") }
      end

      # Ids are strings in documents, even if the column is an integer.
      def typed_id(column, given, pointer)
        type = @models.type(column).name
        value = type == :integer && given.match?(/\A\d{1,18}\z/) ? given.to_i : given
        problem = AttributeType.problem(type, value)
        refuse(pointer, problem, status: 422) if problem
        value
      end

      def attributes(data, pointer)
        members(data, "attributes", pointer) do |key, value, at|
          name = @definition.member_named(key) || (key.to_sym if key != "id" && @writable.include?(key.to_sym))
          if name.nil? || @definition.relationships.key?(name)
            refuse_unknown(at, key, "attribute", @definition.attributes, "a relationship", @definition.relationships)
          elsif allowed?(name, at)
            column = @definition.attributes[name]&.own_column || name
            [column, checked(column, value, at)]
          end
        end
      end

      def checked(column, value, pointer)
        type = @models.type(column)
        problem = AttributeType.problem(type.name, value, array: type.array, allowed: type.allowed)
        problem ||= "must not be null" if value.nil? && @models.locks?(column)
        problem = unfit(type, value) if problem.nil? && !value.nil? && !@models.fits?(column, value)
        refuse(pointer, problem, status: 422) if problem
        @unread << pointer unless value.nil? || AttributeType.known?(type.name)
        @models.value_of(column, value)
      end

      def unfit(type, value)
        value.is_a?(Integer) && type.name == :integer ? "is out of the range of its column" : "cannot be #{shown(value)}"
      end

      def relationships(data, pointer)
        members(data, "relationships", pointer) do |key, value, at|
          relationship = @definition.relationships[@definition.member_named(key)]
          if relationship.nil?
            refuse_unknown(at, key, "relationship", @definition.relationships, "an attribute", @definition.attributes)
          elsif !value.is_a?(Hash) || !value.key?("data")
            refuse(at, "must be an object with the member data")
          elsif allowed?(relationship.name, at)
            [relationship.association_name, @linkage.records(relationship, value["data"], "#{at}/data", @mistakes)]
          end
        end
      end

      # Ignores members whose name begins with "@" (JSON:API 1.1, "@-Members").
      def members(data, member, pointer)
        return {} unless data.key?(member)

        object = data[member]
        return refuse(pointer, "must be an object, got #{Write.kind_of(object)}") || {} unless object.is_a?(Hash)

        object.reject { |key, _| key.start_with?("@") }.filter_map { |key, value|
          yield(key, value, "#{pointer}/#{key.gsub("~", "~0").gsub("/", "~1")}")
        }.to_h
      end

      def allowed?(name, pointer)
        @writable.include?(name) || refuse(pointer, "cannot be written", status: 403, title: "Forbidden")
      end

      def refuse_unknown(pointer, key, kind, members, other, others)
        names, other_names = [members, others].map { |all| all.except(*@hidden).each_value.map { |one| one.key.to_s } }
        key = ClientText.shown(key)
        hint = other_names.include?(key) ? " (it is #{other})" : Nearest.hint(key, names)
        refuse(pointer, "#{@definition.type} has no #{kind} #{key.inspect}#{hint}", whole: true)
      end

      def refuse(pointer, text, status: 400, title: status == 409 ? "Conflict" : "Invalid member", whole: false)
        @mistakes << mistake(pointer, text, status: status, title: title, whole: whole)
        raise InvalidDocument, @mistakes if @mistakes.size >= MOST_MISTAKES
      end

      def mistake(pointer, text, status: 400, title: "Invalid document", whole: false)
        pointer = ClientText.shown(pointer, 300)
        text = "#{pointer.split("/").last} #{text}" unless whole
        BadRequest.new(text, pointer: pointer, status: status, title: title)
      end

      def shown(value)
        value.is_a?(String) ? ClientText.shown(value).inspect : Write.kind_of(value)
      end
    end
  end
end
