# frozen_string_literal: true

module Castellan
  module Serializer
    # The resource objects of a document's opaque types, as JSON: each type's records are loaded in one statement, their linkage is
    # taken from rows where rows know it.
    #
    #   objects = OpaqueObjects.new(plan, row_set, layout, options, reached)
    #   objects.of(plan.root, users, ids)              # => ['{"id":"1","type":"user",…}']
    #   objects.replace([["user/1", '{"type":…}']])    # => the same pairs, with the objects of opaque types in place
    class OpaqueObjects
      # @param reached [Hash{Translation => Set<Symbol>}] the relationships of each whose records are included
      def initialize(plan, row_set, layout, options, reached)
        @plan = plan
        @row_set = row_set
        @layout = layout
        @options = options
        @reached = reached
        @opaque = plan.nodes.drop(1).select { |node| translation(node).opaque? }
      end

      # @param ids [Array<String>] of the records, as the rows have them
      # @return [Array<String>]
      def of(node, records, ids)
        writer = writer(node)
        section = section(node)
        records.each_with_index.map do |record, index|
          number = section.number_of(ids[index])
          JsonText.of(writer.call(record, number && ->(relationship) { linked(node, section, number, relationship) }))
        end
      end

      # @param included [Array<Array(String, String)>] "type/id" and bytes
      # @return [Array<Array(String, String)>]
      def replace(included)
        return included if @opaque.empty?

        included.map { |key, bytes| [key, included_objects.fetch(key, bytes)] }
      end

      private

      def translation(node)
        node.definition.resource.translation
      end

      def writer(node)
        translation = translation(node)
        type = translation.serializer.record_type
        ResourceObject.new(translation.serializer, @options.fieldset(type), @options.params, @reached.fetch(translation).to_a)
      end

      def section(node)
        Serialize::NodeRows.new(@row_set.table(node), @layout.nodes[@plan.nodes.index { |other| other.equal?(node) }])
      end

      # @return [Array<String>, String, nil] nothing where rows do not know
      def linked(node, section, number, relationship)
        edge = section.parts.edges.find { |one| node.edges[one.position].relationship.name == relationship.name } or return
        ids = section.linked(number, edge)
        relationship.to_many? ? ids : ids.first || ""
      end

      def included_objects
        @included_objects ||= @opaque.each_with_object({}) do |node, objects|
          ids = ids_of(node)
          of(node, records(node, ids), ids).zip(ids) { |text, id| objects["#{node.definition.type}/#{id}"] ||= text }
        end
      end

      def ids_of(node)
        section = section(node)
        Array.new(section.size) { |number| section.id(number) }.uniq
      end

      def records(node, ids)
        found = load(node, ids)
        ids.map { |id| found.fetch(id) { gone(node, id) } }
      end

      def load(node, ids)
        translation = translation(node)
        column = translation.id_column
        model = translation.model
        scope = (model.respond_to?(:unscoped) ? model.unscoped : model.dataset).where(column => typed(translation, column, ids))
        translation.load(scope, @options.fieldset(translation.serializer.record_type)).to_h do |record|
          [record.public_send(column).to_s, record]
        end
      end

      def typed(translation, column, ids)
        translation.adapter.integer?(column) ? ids.map(&:to_i) : ids
      end

      def gone(node, id)
        raise Castellan::Error, "#{node.definition.type} #{id} was deleted while the document was written; ask again, or read it in a " \
                                "transaction with isolation: :repeatable_read"
      end
    end
  end
end
