# frozen_string_literal: true

module Castellan
  module Serializer
    # The constant bytes of a document as jsonapi-serializer lays it out. Where a set of fields leaves nothing of what a serializer
    # declares, it writes `"attributes":{}` and `"relationships":{}`; of a relationship with `lazy_load_data` whose records are not
    # included it writes `"roles":{}`. Otherwise as any {Serialize::Template}.
    #
    #   Layout.new(plan, ->(translation) { lazy.fetch(translation) }, escape: :rails)   # of a plan whose resources come from {Translation}
    class Layout < Serialize::Template
      # @param bare [#call] the relationships of a translation that are written without linkage
      def initialize(plan, bare, escape:)
        @bare = bare
        super(plan, escape: escape)
      end

      private

      def parts(node, index)
        parts = super
        translation = node.definition.resource.translation
        return parts if translation.opaque? # its objects are written from records

        parts.dup.tap { |copy| copy.close = ending(node, translation, parts.close).freeze }.freeze
      end

      # The object's own brace is the last of `close`, that of its relationships the one before.
      def ending(node, translation, close)
        attributes = ',"attributes":{}' if node.members.empty? && !Blank.blank?(translation.serializer.attributes_to_serialize)
        bare = @bare.call(translation).map { |relationship| "#{quoted(relationship.key)}:{}" }.join(",")
        return "#{close.delete_suffix("}}")}#{",#{bare}" unless bare.empty?}}#{attributes}}" if node.edges.any?(&:written)

        declared = !Blank.blank?(translation.serializer.relationships_to_serialize)
        "#{close.delete_suffix("}")}#{attributes}#{",\"relationships\":{#{bare}}" if declared}}"
      end
    end
  end
end
