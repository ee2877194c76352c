# frozen_string_literal: true

module Castellan
  module Write
    # Writes records of a resource for a viewer: authorizes, checks the document, and calls the resource.
    #
    #   writer = Writer.new(PostResource, viewer: user, scope: user.posts)
    #   record = writer.create({ "type" => "posts", "attributes" => { "title" => "Hello" } }, "/data")
    #
    # Call it inside {Transaction.run}. Raises {BadRequest}: 404 for a record outside of the scope, 403 if the
    # viewer is not authorized, 409 and 422 as in JSON:API 1.1.
    class Writer
      # @return [Resource::Definition]
      # @return [ActiveRecordModels, SequelModels]
      attr_reader :definition, :models

      # @param resource [Class]
      # @param viewer [Object, nil]
      # @param scope [Object] a relation or dataset with the records that the viewer may write; :all for all
      # @param local [Hash{Array(String, String) => String}] see {LinkedRecords#initialize}
      def initialize(resource, viewer:, scope: :all, local: {})
        @resource = resource
        @definition = resource.definition
        @viewer = viewer
        @scope = scope
        @models = Models.for(definition.model)
        @scopes = Rows::ViewerScopes.new(viewer)
        @linkage = LinkedRecords.new(@scopes, local)
        @unread = []
        @values = {}
      end

      # @param data [Object] a parsed resource object
      # @param pointer [String] the JSON pointer to the resource object
      # @return [Object] the stored record
      # @raise [BadRequest]
      def create(data, pointer)
        writing.refuse(:create, definition) unless writing.creates?(@viewer)
        @values = values = read(:create, data, pointer)
        authorize(:create, nil, values)
        record = @resource.allocate.create(values, @viewer)
        raise NotSaved, record if !models.stored?(record) || left_out?(values)

        visible!(identified!(record, pointer))
      end

      # @param record [Object] see {#find}
      # @param id [String] the id in the URL
      # @return [Object] the record
      # @raise [BadRequest]
      def update(record, id, data, pointer)
        @values = values = keep_hidden(record, read(:update, data, pointer, id: id, hidden: hidden_in_row(record, data)))
        authorize(:update, record, values)
        visible!(identified!(@resource.allocate.update(record, values, @viewer), pointer))
      end

      # @param record [Object] see {#find}
      # @raise [BadRequest]
      def delete(record)
        writing.refuse(:delete, definition) unless writing.deletes?(@viewer, record)
        authorize(:delete, record, {})
        @resource.allocate.delete(record, @viewer)
        nil
      end

      # Changes one relationship (JSON:API 1.1, "Updating Relationships").
      # @param record [Object] see {#find}
      # @param relationship [Resource::Relationship]
      # @param operation [Symbol] :replace, :add or :remove
      # @param data [Object] parsed linkage
      # @return [Boolean] whether the relationship has exactly the members that the client asked for
      # @raise [BadRequest]
      def relate(record, relationship, operation, data, pointer)
        writing.refuse(:update, definition, relationship) unless writing.names(:update, @viewer).include?(relationship.name)
        mistakes = []
        others = @linkage.records(relationship, data, pointer, mistakes, removed: operation == :remove)
        raise InvalidDocument, mistakes if mistakes.any?

        @relationship = relationship
        @values = values = { relationship.association_name => others }
        authorize(:update, record, values)
        values = changed(record, values, operation)
        record = visible!(@resource.allocate.update(record, values, @viewer))
        raise unseen if default_scope? && visible(id_of(record)).nil? # there is no document that would be missing

        as_asked?(record, values)
      end

      # Finds a record that the viewer may see, and locks its row.
      # @param id [String]
      # @param pointer [String, nil] to what names the record in the body
      # @return [Object]
      # @raise [BadRequest] 404
      def find(id, pointer: nil)
        record = visible(id)
        # Another transaction may have changed the row before the lock, so that the viewer may no longer see
        # it.
        return record if record && models.lock(record) && (unscoped? || visible(id))

        raise BadRequest.new("there is no #{definition.type} with the id #{ClientText.shown(id, 100).inspect}",
                             status: 404, title: "Not found", pointer: pointer)
      end

      # Runs before and after the lock and the write: the detector must not report this as a repeated query.
      # @param id [String]
      # @return [Object, nil] a record that the viewer may see
      def visible(id)
        adapter = @resource.checked_rows
        rows = adapter.scopes.by_ids(scope(adapter), Array(Rows::Ids.text(id)), definition.id_column)
        Recording.read(Recording::OWN, nil) { adapter.scopes.load(rows, whole: true) }.first
      end

      # @param record [Object]
      # @return [String] the id in documents
      def id_of(record)
        Write.id_of(definition, record)
      end

      # @return [BadRequest] for a record that its viewer cannot read, because of a scope or of the model's default scope
      def unseen
        BadRequest.new("the #{definition.type} would not be visible to you", status: 403, title: "Forbidden")
      end

      # @param error [Exception]
      # @param prefix [String] the JSON pointer to the resource object
      # @return [BadRequest, nil] nil if no client can fix the error
      def mistake(error, prefix)
        return if error.is_a?(Transaction::Committed)

        long = too_long(prefix)
        members = pointers(prefix)
        errors = DatabaseError.new(models, members, linked: linked(prefix), suspects: long.any? ? long : @unread,
                                                    written: members.values_at(*@values.keys.map(&:to_s)).compact)
        error.is_a?(NotSaved) ? errors.invalid(error.record) : errors.translate(error) || errors.unread(error, @unread)
      end

      private

      def writing
        definition.writing
      end

      # ActiveRecord creates a record although its has_one is invalid, and leaves the has_one as it was.
      def left_out?(values)
        ones = definition.relationships.each_value.reject(&:to_many?).map(&:association_name)
        values.values_at(*ones).compact.any? { |other| Models.for(other.class).problems(other).any? }
      end

      def unscoped?
        definition.scope.nil? && :all.equal?(@scope)
      end

      def read(action, data, pointer, id: nil, hidden: [])
        object = ResourceObject.new(definition, action, viewer: @viewer, linkage: @linkage, models: models, hidden: hidden)
        object.values(data, pointer, id: id).tap { @unread = object.unread }
      end

      def authorize(action, record, values)
        writing.refuse(action, definition) unless writing.authorized?(action, @viewer, record, values) { draft(values) }
      end

      # Renders the members of the client's document whose `if:` reads the row, because the condition may hide them in this row.
      # @return [Array<Symbol>] the hidden ones; as at the URL of a relationship, the client cannot write them
      def hidden_in_row(record, data)
        given = data.is_a?(Hash) ? data.values_at("attributes", "relationships").grep(Hash).flat_map(&:keys) : []
        names = given.filter_map { |key| definition.member_named(key) }.uniq.select { |name| member(name).condition&.by_row }
        return names if names.empty?

        related = names & definition.relationships.keys
        document = @resource.document(@scope, viewer: @viewer, id: id_of(record), keeper: nil, format: :json_api,
                                              include: related, fields: { definition.type => names })
        data = JSON.parse(document.to_json, allow_duplicate_key: true)["data"].to_h
        shown = data.slice("attributes", "relationships").values.flat_map(&:keys)
        names.reject { |name| shown.include?(member(name).key) }
      end

      def member(name) = definition.attributes[name] || definition.relationships.fetch(name)

      # A client that replaces a to-many relationship lists the members that it may see; the hidden ones stay.
      # @raise [BadRequest] 403 if the hidden record of a has_one would be changed
      def keep_hidden(record, values)
        partial = definition.relationships.each_value.select do |relationship|
          values.key?(relationship.association_name) && (relationship.leaves_out? || relationship.definitions.any?(&:scope))
        end
        partial.each_with_object(values.dup) do |relationship, kept|
          name = relationship.association_name
          next keep_hidden_one(record, relationship, kept[name]) unless relationship.to_many?

          kept[name] += models.difference(@linkage.hidden(relationship, models.members(record, name)), kept[name])
        end
      end

      # The foreign key of a has_one is in the row of the other record.
      def keep_hidden_one(record, relationship, other)
        name = relationship.association_name
        return if models.foreign_keys(name).any?

        present = models.stored(record, name)
        return if models.difference([present].compact, [other].compact).empty? || @linkage.hidden(relationship, [present]).empty?

        raise BadRequest.new("you may not change #{relationship.key} of this #{definition.type}", status: 403, title: "Forbidden")
      end

      # Without to-many relationships, because assigning them may make the ORM write the related records.
      def draft(values)
        names = definition.relationships.each_value.select(&:to_many?).map(&:association_name)
        models.build.tap { |record| models.assign(record, values.except(*names)) }
      end

      # The resource's method or a callback of the model may have changed the relationship as well.
      def as_asked?(record, values)
        found, wanted = [models.stored(record, values.keys.first), values.values.first].map { |some| Array(some) }
        found.size == wanted.size && models.difference(found, wanted).empty?
      end

      def changed(record, values, operation)
        return keep_hidden(record, values) if operation == :replace

        association, others = values.first
        present = models.members(record, association)
        { association => operation == :add ? present + models.difference(others, present) : models.difference(present, others) }
      end

      def scope(adapter)
        return @scopes.narrow(definition, adapter) if :all.equal?(@scope)

        @scopes.narrow(definition, adapter, adapter.scopes.from(@scope))
      end

      # A slug that is the id may be NULL or empty in the table (`"?".parameterize`), but no document can have such a record.
      # @return [Object] the record
      def identified!(record, pointer)
        return record if identified?(record) || identified?(record.reload) # a trigger of the database may have set it

        raise BadRequest.new("id must not be null or empty", status: 422, title: "Invalid value", pointer: "#{pointer}/id")
      end

      def identified?(record)
        values = Write.key_of(definition, record)
        values.none?(&:nil?) && values != [""]
      end

      # A viewer must not create a record that the viewer may not see, or change a record so that it becomes
      # hidden.
      def visible!(record)
        unscoped? || visible(id_of(record)) ? record : raise(unseen)
      end

      # Whether the model itself may hide a record.
      def default_scope?
        scopes = @resource.checked_rows.scopes
        scopes.hide_rows? || !scopes.constant_by_ids?
      end

      # @return [Array<(String, String, Array<Object>)>] names, JSON pointers and records of the relationships that are written
      def linked(prefix)
        definition.relationships.each_value.filter_map do |one|
          next unless @values.key?(one.association_name)

          [one.key, @relationship ? prefix : "#{prefix}/relationships/#{one.key}", [@values[one.association_name]].flatten.compact]
        end
      end

      # @return [Array<String>] JSON pointers to texts and decimal numbers that are longer than their column
      def too_long(prefix)
        definition.attributes.each_value.filter_map do |attribute|
          column = attribute.own_column || attribute.name
          "#{prefix}/attributes/#{attribute.key}" if models.exceeds?(column, @values[column])
        end
      end

      # @return [Hash{String => String}] JSON pointers by column, attribute and association
      def pointers(prefix)
        return linkage_pointers(prefix) if @relationship

        found = definition.writing.rules.flat_map(&:names).to_h { |name| [name.to_s, "#{prefix}/attributes/#{name}"] }
        found["base"] = prefix
        written = writing.all_names # `id :slug` with `writable :slug`: clients send an attribute
        columns = written.include?(:id) ? [*definition.id_column] : [*definition.id_column] - written
        columns.each { |column| found[column.to_s] = "#{prefix}/id" }
        definition.attributes.each_value do |attribute|
          pointer = "#{prefix}/attributes/#{attribute.key}"
          found[attribute.name.to_s] = pointer
          found[attribute.own_column.to_s] ||= pointer if attribute.own_column
        end
        definition.relationships.each_value do |relationship|
          names_of(relationship).each { |name| found[name] = "#{prefix}/relationships/#{relationship.key}" }
        end
        found
      end

      # The document of a relationship's URL has only linkage.
      def linkage_pointers(prefix)
        ["base", *names_of(@relationship)].to_h { |name| [name, prefix] }
      end

      def names_of(relationship)
        [relationship.name, relationship.association_name, *models.foreign_keys(relationship.association_name)].map(&:to_s)
      end
    end
  end
end
