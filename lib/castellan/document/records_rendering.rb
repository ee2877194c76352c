# frozen_string_literal: true

module Castellan
  class Document
    # Writes the document of records that the caller has already loaded.
    #
    #   UserResource.document([ada, alan], include: "roles")
    #   UserResource.document(ada)                            # one resource
    #   UserResource.document(User.find_by(email: email))     # one, or {"data":null} and status 404
    #   LevelResource.document([{ id: 1, title: "Keep" }])    # a resource without a model
    #
    # Attributes and loaded associations are read from the records, everything else as rows. Nothing is filtered, sorted, divided
    # into pages or kept. Where the resource declares a `scope`, one statement finds the records that the viewer may see.
    class RecordsRendering < Rendering
      # @return [Boolean]
      def collection?
        !@scope.single?
      end

      # @return [Boolean]
      def found?
        !paged.single? || paged.to_a.any?
      end

      # @return [nil] not known
      def tables
        nil
      end

      # @return [Rows::Records] those that the viewer may see
      def paged
        @paged ||= definition.scope ? @scope.only(scopes.visible_records(definition, adapter, @scope.to_a)) : @scope
      end

      # @return [nil] nothing is counted
      def total
        nil
      end

      # @return [String] in words, what will be read
      def explain
        "#{@scope.to_a.size} #{definition.type} that were given as records: nothing is read that they have loaded, and what they have " \
          "not is read as rows#{"; the scope of #{definition.name} leaves out what the viewer may not see" if definition.scope}"
      end
    end
  end
end
