# frozen_string_literal: true

module Castellan
  class Document
    # What a resource answers with: extended by {Resource}.
    #
    #   UserResource.document(User.active, query: params)   # => a {Document}
    #   UserResource.render(User.active)                    # => its bytes
    module OfResource
      # The answer to one request; see {Document}. Reads nothing yet.
      # Where the resource declares a `scope`, only what the viewer may see is in it, of relations and of records that are given.
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
      def document(scope = :all, query: {}, viewer: nil, id: :all, meta: nil, links: nil, keeper: Castellan.keeper, **asked)
        definition = self.definition
        adapter = checked_rows
        scope = nil if id.nil?
        id = nil if :all.equal?(id)
        request = query.is_a?(Plan::Request) ? query : Plan::Request.parse(definition, query, **asked)
        scopes = Rows::ViewerScopes.new(viewer)
        Document.new(Rendering.for(definition, adapter, scope, id: id, request: request, scopes: scopes, viewer: viewer, meta: meta,
                                                               links: links, keeper: keeper))
      end

      # The rows of this resource that a viewer may see, for a filter's block or a controller.
      #
      #   filter(:tag) { |posts, names, viewer| posts.where(id: TagResource.visible_to(viewer).where(name: names).select(:post_id)) }
      # @param viewer [Object, nil]
      # @return [Object] a relation or dataset of the model; all of it where no `scope` is declared
      # @raise [DeclarationError]
      def visible_to(viewer)
        Rows::ViewerScopes.new(viewer).narrow(definition, checked_rows)
      end

      # Records are rendered by {#document}, and a resource has no instances.
      # @raise [ConfigurationError] always
      def new(*)
        raise ConfigurationError, "#{name || "a resource"} has no instances: write #{name}.document(record) for a document, " \
                                  "#{name}.render(record) for its bytes"
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
          Castellan.keeper&.learn(definition)
        end
      end
    end
  end
end
