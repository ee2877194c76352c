# frozen_string_literal: true

module Castellan
  class Document
    # Writes the document of records that the caller has loaded.
    #
    #   UserResource.document([ada, alan], include: "roles")
    #   UserResource.document(ada)                            # one resource
    #   UserResource.document(User.find_by(email: email))     # one, or {"data":null} and status 404
    #   LevelResource.document([{ id: 1, title: "Keep" }])    # a resource without a model
    #
    # Attributes and loaded associations are read from the records, everything else as rows. Nothing
    # is filtered, sorted, paginated or cached. If the resource declares a `scope`, one statement
    # finds the records that the viewer may see.
    class RecordsRendering < Rendering
      class << self
        # @param given [Object] a record, a list of records, or nil
        # @return [RecordsRendering]
        def of_records(definition, adapter, given, request:, **around)
          choice = request.chosen.first unless given.nil?
          Plan::Parameter.refuse(choice.name, "#{choice} cannot be used here: the server chooses the records") if choice
          records = Rows::Records.of(given)
          suited = Rows.adapter_for(adapter, records.to_a)
          rendering = new(definition, records, adapter: suited, request: request, **around)
          check(definition, records.to_a, readers(rendering.plan.root, suited)) unless suited.equal?(adapter) && adapter.model
          rendering
        end

        private

        # Any object with an id may be a record; a record of another model
        # must respond to all written members.
        def readers(node, adapter)
          return [node.definition.id_column].flatten unless adapter.model

          walked = node.edges.select(&:data).map(&:relationship).reject(&:block)
          [*node.columns.select(&:own?), *walked].map(&:name).flatten
        end

        def check(definition, records, readers)
          records.each do |record|
            missing = record.is_a?(Hash) ? [] : readers.reject { |name| record.respond_to?(name) }
            refuse(definition, "or records that have #{missing.join(", ")}, got #{record.inspect[0, 60]}") if missing.any?
          end
        end
      end

      def collection?
        !@scope.single?
      end

      def found?
        !paged.single? || paged.to_a.any?
      end

      # @return [nil] the tables are unknown
      def tables
        nil
      end

      # @return [Rows::Records] the records that the viewer may see
      def paged
        @paged ||= definition.scope ? @scope.only(scopes.visible_records(definition, adapter, @scope.to_a)) : @scope
      end

      # @return [nil] records are not counted
      def total
        nil
      end

      # @return [nil] records are not paginated
      def cursor_page
        nil
      end

      # @return [String] describes what will be read
      def explain
        "#{@scope.to_a.size} #{definition.type} that were given as records: nothing is read that they have loaded, and what they have " \
          "not is read as rows#{"; the scope of #{definition.name} leaves out what the viewer may not see" if definition.scope}"
      end

      private

      def counting_query
        nil
      end

      alias selected paged
    end
  end
end
