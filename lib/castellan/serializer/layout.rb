# frozen_string_literal: true

module Castellan
  module Serializer
    # Computes the constant bytes of a document in jsonapi-serializer's layout.
    #
    #   Layout.new(plan, tree, shown, escape: :rails)   # for a plan of {RelationDocument}
    #
    # The id precedes the type. Members have the order of the fields, included records the order of the
    # include. Groups without members are `"attributes":{}` and `"relationships":{}`; relationships with
    # `lazy_load_data` that are not included are `"roles":{}`.
    class Layout < Serialize::Template
      # @param tree [Hash{Symbol => Hash}] the tree of included relationships, by key
      # @param shown [Hash{Translation => Array<Symbol>}] the relationships
      #   to write, also those without linkage
      def initialize(plan, tree, shown, escape:)
        @tree = tree
        @shown = shown
        super(plan, escape: escape)
      end

      private

      # `@pending` contains the bytes since the last value.
      def parts(node, index)
        serializer = node.definition.resource.translation.serializer
        @pending = ",\"type\":#{quoted(node.definition.type)}"
        members = group("attributes", serializer.attributes_to_serialize, node.members.each_with_index) do |member, position|
          key = member.attribute.key
          @pending << "#{"," if position.positive?}#{quoted(key)}:"
          MemberParts.new(key, take, member.positions.first, nil, name(member.attribute)).freeze
        end
        edges = group("relationships", serializer.relationships_to_serialize, shown(node).each_with_index) do |key, position|
          @pending << "#{"," if position.positive?}#{quoted(key)}:{"
          edge(node, key).tap { @pending << "}" }
        end
        @pending << "}"
        NodeParts.new(index, node.definition.type.to_s, '{"id":', members, in_order(node, edges), take, true, false).each(&:freeze).freeze
      end

      def group(name, declared, shown, &block)
        return [] if Serializer.blank?(declared)

        @pending << ",\"#{name}\":{"
        shown.filter_map(&block).tap { @pending << "}" }
      end

      def shown(node) = @shown.fetch(node.definition.resource.translation)

      def take
        pending, @pending = @pending, +""
        pending.freeze
      end

      def edge(node, key)
        position = node.edges.index { |edge| edge.written && edge.relationship.name == key } or return
        @pending << '"data":'
        edge_part(node.edges[position], take, position)
      end

      def link(_definition) = '{"id":'

      def link_end(relationship) = ",\"type\":#{quoted(relationship.definition.type)}}".freeze

      # The encoder writes edges and visits their records in one order. If these orders differ, an edge is
      # listed twice: once to be written and once to be visited.
      def in_order(node, written)
        keys = node.path.split(".").reduce(@tree) { |level, key| level.fetch(key.to_sym) }.keys
        leading = node.edges.each_with_index.select { |edge, _| edge.node }.sort_by { |edge, _| keys.index(edge.relationship.name) }
        leading = leading.map { |edge, position| edge_part(edge, nil, position) }
        both = written + leading.reject { |edge| written.any? { |other| other.position == edge.position } }
        return both if both.select(&:child).map(&:position) == leading.map(&:position)

        written.map { |edge| edge.dup.tap { |copy| copy.child, copy.children = nil, [nil].freeze }.freeze } + leading
      end
    end
  end
end
