# frozen_string_literal: true

module Castellan
  module Serializer
    # The constant bytes of a document as jsonapi-serializer lays it out: the id before the type, and relationships and included
    # records in the order in which they were asked for. Where a set of fields leaves nothing of what a serializer declares, it
    # writes `"attributes":{}` and `"relationships":{}`; of a relationship with `lazy_load_data` whose records are not included it
    # writes `"roles":{}`.
    #
    #   Layout.new(plan, shown, walks, escape: :rails)   # of a plan whose resources come from {Translation}
    class Layout < Serialize::Template
      # @param shown [Hash{Translation => Array<Relationship>}] what is written of each type, in order, bare ones too
      # @param walks [Hash{Plan::Node => Array<Symbol>}] the relationships that lead to included records, in order
      def initialize(plan, shown, walks, escape:)
        @shown = shown
        @walks = walks
        super(plan, escape: escape)
      end

      private

      def parts(node, index)
        parts = super.dup
        translation = node.definition.resource.translation
        parts.edges = walked(parts.edges, lay_out(parts, translation), node).freeze
        parts.each(&:freeze).freeze
      end

      def lay_out(parts, translation)
        parts.open = '{"id":'
        parts.members, lead = attributes(parts.members, ",\"type\":#{quoted(parts.type)}", translation.serializer)
        written, parts.close = relationships(parts.edges, lead, translation)
        written
      end

      # @return [Array(Array<MemberParts>, String)] and what stands before the relationships
      def attributes(members, lead, serializer)
        return [members, "#{lead}#{',"attributes":{}' unless Blank.blank?(serializer.attributes_to_serialize)}"] if members.empty?

        [[with(members.first, before: lead + members.first.before), *members.drop(1)].freeze, "}"]
      end

      # @return [Array(Array<EdgeParts>, String)] and the end of the object
      def relationships(edges, lead, translation)
        return [[], "#{lead}}"] if Blank.blank?(translation.serializer.relationships_to_serialize)

        edges = edges.select(&:before).to_h { |edge| [edge.key, edge] }
        before = "#{lead},\"relationships\":{"
        written = @shown.fetch(translation).each_with_index.filter_map do |relationship, position|
          before += "#{"," unless position.zero?}#{quoted(relationship.key)}:{"
          edge = edges[relationship.key.to_s]
          edge = with(edge, before: "#{before}\"data\":", link: '{"id":', link_end: edge.link.sub(/\A\{(.*),"id":\z/m, ',\1}')) if edge
          before = edge ? "}" : "#{before}}"
          edge
        end
        [written, "#{before}}}"]
      end

      # Edges are written and walked in one order: where these are two, what is written leads nowhere, and what leads is not written.
      def walked(edges, written, node)
        walks = @walks.fetch(node)
        leading = edges.select(&:child).sort_by { |edge| walks.index(node.edges[edge.position].relationship.name) }
        both = written + leading.reject { |edge| written.any? { |other| other.position == edge.position } }
        return both if both.select(&:child).map(&:position) == leading.map(&:position)

        written.map { |edge| with(edge, child: nil, children: [nil].freeze) } + leading.map { |edge| with(edge, before: nil) }
      end

      def with(parts, **changed)
        copy = parts.dup
        changed.each { |name, value| copy[name] = value.frozen? ? value : value.freeze }
        copy.freeze
      end
    end
  end
end
