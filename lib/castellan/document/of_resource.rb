# frozen_string_literal: true

module Castellan
  class Document
    # What a resource answers with: extended by {Resource}.
    #
    #   UserResource.document(User.active, query: params)   # => a {Document}
    #   UserResource.render(User.active)                    # => its bytes
    module OfResource
      # The answer to one request; see {Document}. Reads nothing yet.
      # @param scope a relation, a dataset or a model; `:all`, the default, is all of the declared model. Or records: an array of models or
      #   of other objects, a relation that is loaded, one record; nil is no record: `{"data":null}`, status 404
      # @param query [Hash, Plan::Request, nil] a framework's raw parameters: `include`, `fields`, `filter`, `sort`, `page`; anything else
      #   is ignored. Or what was made of them before: a request is frozen, and one that is asked again and again need not be parsed again
      # @param viewer [Object, nil] given to per-viewer attributes
      # @param id [Object, nil] one record: a single resource object, or status 404; nil is no record. `:all`, the default, asks for none
      #   in particular
      # @return [Document]
      # @raise [BadRequest] naming the parameter and what is allowed
      # @raise [ConfigurationError] when the scope is of another model
      def document(scope = :all, query: {}, viewer: nil, id: :all, meta: nil, links: nil, keeper: Document.keeper, **asked)
        adapter = checked_rows
        scope = nil if id.nil?
        id = nil if whole?(id)
        request = query.is_a?(Plan::Request) ? query : Plan::Request.parse(definition, query, **asked)
        if records?(scope, request, id)
          return of_records(adapter, scope, request: request, viewer: viewer, meta: meta, links: links, keeper: keeper)
        end

        Document.new(definition, scope_of(adapter, scope), request: request, adapter: adapter, viewer: viewer, id: id, meta: meta,
                                                           links: links, keeper: keeper)
      end

      # @return [String] the bytes: short for `document(…).to_json`
      def render(scope = :all, **options)
        document(scope, **options).to_json
      end

      # Holds the declaration, and those of all resources that it leads to, against the database, once.
      # @return [Object] the rows adapter
      # @raise [DeclarationError]
      def checked_rows
        @checked_rows ||= Document::DeclarationCheck.of(definition).tap do
          definition.reachable.each { |reached| Document::DeclarationCheck.of(reached) }
          Document.keeper&.learn(definition)
        end
      end

      private

      # An association that is compared is loaded.
      def whole?(scope) = :all.equal?(scope)

      # A relation that is loaded is read again only where the request narrows it.
      def records?(scope, request, id)
        return false if whole?(scope) || scope.is_a?(Class) || (id && !scope.nil?)
        return !Rows.scope?(scope) unless scope.respond_to?(:loaded?) && scope.loaded?

        request.filters.empty? && request.sort.empty? && request.page.nil? && scope.klass <= definition.model
      end

      def of_records(adapter, given, request:, **around)
        choice = request.chosen.first unless given.nil?
        Plan::Parameter.refuse(choice.name, "#{choice} cannot be asked for here: the records are given") if choice
        records = Rows::Records.of(given)
        suited = Rows.suited(adapter, records.to_a)
        document = Document::OfRecords.new(definition, records, adapter: suited, request: request, **around)
        refuse_records(records.to_a, readers(document.plan.root, suited)) unless suited.equal?(adapter) && adapter.model
        document
      end

      # Whatever answers for its id may be a record; a record of another model has what is written of it.
      def readers(node, adapter)
        return [definition.id_column].flatten unless adapter.model

        walked = node.edges.select(&:data).map(&:relationship).reject(&:block)
        [*node.columns.select(&:own?), *walked].map(&:name).flatten
      end

      def refuse_records(records, readers)
        wrong = records.index { |record| !record.is_a?(Hash) && !readers.all? { |name| record.respond_to?(name) } } or return

        record = records[wrong]
        missing = readers.reject { |name| record.respond_to?(name) }
        refuse_given("or records that have #{missing.join(", ")}, got #{record.inspect[0, 60]}")
      end

      def scope_of(adapter, scope)
        raise ConfigurationError, "#{definition.name} has no model: write `model User` in its body, or give document the records" \
          unless definition.model

        scope = adapter.scope if whole?(scope)
        scope = adapter.scope(scope) if scope.is_a?(Class)
        return scope if adapter.scope?(scope)

        refuse_given("got #{scope.inspect[0, 60]}")
      end

      def refuse_given(text)
        raise ConfigurationError, "#{definition.name} is declared on #{definition.model.inspect[0, 60]}; " \
                                  "give document a scope of that, #{text}"
      end
    end
  end
end
