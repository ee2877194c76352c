# frozen_string_literal: true

module Castellan
  class Document
    # The document of records that the caller has already: their attributes are read, and the associations that they have loaded;
    # what they have not loaded is read as rows. It is never kept, because nobody knows how old the records are.
    #
    #   UserResource.document([ada, alan], include: "roles")
    #   UserResource.document(ada)                            # one resource
    #   UserResource.document(User.find_by(email: email))     # one, or {"data":null} and status 404
    #   LevelResource.document([{ id: 1, title: "Keep" }])    # a resource without a model
    #
    # Nothing is filtered, sorted or divided into pages: the caller has chosen. Where the resource declares a `scope`, one statement
    # asks which of the records the viewer may see, and the others are left out.
    class OfRecords < Document
      # @return [Boolean]
      def collection?
        !@scope.single?
      end

      # @return [Integer] 404 where no record was found
      def status
        paged.single? && paged.to_a.empty? ? 404 : 200
      end

      # @return [nil] not known
      def tables
        nil
      end

      # @return [Rows::Records] those that the viewer may see
      def paged
        @seen ||= definition.scope ? @scope.only(scopes.visible_records(definition, @adapter, @scope.to_a)) : @scope
      end

      # @return [nil] there are as many as there are
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
