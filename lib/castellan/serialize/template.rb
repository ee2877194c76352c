# frozen_string_literal: true

module Castellan
  module Serialize
    # Computes the bytes of a document that do not depend on its rows, once per plan and escaping.
    #
    #   template = Template.new(plan, escape: :rails)
    #   template.nodes.first.open                  # => '{"type":"users","id":'
    #   template.nodes.first.members.first.before  # => ',"attributes":{"email":'
    #
    # Members follow the plan's order, attributes before relationships. The nested format omits edges without
    # a node (linkage only). Frozen, thread-safe, and without values of a request.
    class Template
      # The constant bytes of one node. `open` precedes the id, `close` ends the object;
      # `type` is the resource's type. If `after` is true, links or meta objects follow
      # `close` before the end of the object.
      NodeParts = Struct.new(:index, :type, :open, :members, :edges, :close, :regular, :after)
      # The constant bytes of one member. `before` precedes the value; `column` is the position in the row,
      # nil for computed values; `hole` is the position in plan.holes, nil except for per-viewer attributes;
      # `name` is the quoted key with its colon, for irregular rows.
      MemberParts = Struct.new(:key, :before, :column, :hole, :name)
      # The constant bytes of one edge. `before` precedes the linkage or nested value; it is nil if a sparse
      # fieldset omits the member and the edge only adds included records. `link` and `link_end` surround each
      # linked id. `child` is the index of the related node, nil for linkage only. `links` and `children` have
      # one entry per related type. `data` is false if linkage is omitted.
      EdgeParts = Struct.new(:key, :before, :link, :child, :to_many, :position, :links, :children, :data, :name, :link_end)

      # @!attribute plan
      #   @return [Plan::FetchPlan]
      # @!attribute escape
      #   @return [Symbol] :json, :rails or :rails_html
      # @!attribute text
      #   @return [Text]
      # @!attribute nodes
      #   @return [Array<NodeParts>] in the order of plan.nodes
      # @!attribute compiled
      #   @return [Object, nil] the C encoder's copy; nil without the extension
      attr_reader :plan, :escape, :text, :nodes, :compiled

      def initialize(plan, escape: :json)
        @plan = plan
        @escape = escape
        @text = Text.for(escape)
        @hole = -1
        @nodes = plan.nodes.each_with_index.map { |node, index| parts(node, index) }.freeze
        @compiled = Serialize.native? ? NativeEncoder.compile(self) : nil
        freeze
      end

      def nested?
        plan.format == :nested
      end

      def compound?
        plan.compound? && !nested?
      end

      # @return [Boolean] whether primary rows are written as resources of several
      #   types, through the root's only edge
      def several_types?
        plan.several_types?
      end

      private

      def parts(node, index)
        type = node.definition.type.to_s
        members = node.members.each_with_index.map { |member, position| member_parts(member, position) }
        edges = edge_parts(node, members.any?)
        close = closing(members, edges)
        close = close.delete_suffix("}") if node.after?
        NodeParts.new(index, type.freeze, opening(type), members.freeze, edges.freeze, close, node.regular?, node.after?)
                 .each(&:freeze).freeze
      end

      def opening(type)
        nested? ? '{"id":' : "{\"type\":#{quoted(type)},\"id\":"
      end

      def closing(members, edges)
        return "}" if nested?
        return "}}}" if edges.any?(&:before)

        members.any? ? "}}" : "}"
      end

      def member_parts(member, position)
        attribute = member.attribute
        before = "#{!nested? && position.zero? ? ',"attributes":{' : ","}#{quoted(attribute.key)}:"
        MemberParts.new(attribute.key.to_s.freeze, before.freeze, member.positions.first, hole(attribute), name(attribute)).freeze
      end

      def hole(attribute)
        @hole += 1 if attribute.source == :viewer
      end

      def edge_parts(node, members)
        first = true
        edges = node.edges.each_with_index.reject do |edge, _|
          nested? && (!edge.included? || !edge.written) && !edge.relationship.itself?
        end
        edges.map do |edge, position|
          before = before_edge(edge.relationship, first, members) if edge.written
          first &&= !edge.written
          edge_part(edge, before, position)
        end
      end

      def edge_part(edge, before, position)
        links = edge.relationship.definitions.map { |definition| link(definition) }
        children = (edge.alternatives || [edge.node]).map { |node| child(node) }
        EdgeParts.new(edge.relationship.key.to_s.freeze, before.freeze, links.first, children.first, edge.relationship.to_many?, position,
                      links.freeze, children.freeze, edge.data, name(edge.relationship), link_end(edge.relationship)).freeze
      end

      def before_edge(relationship, first, members)
        nested? ? ",#{quoted(relationship.key)}:" : relationship(relationship, first, members)
      end

      def relationship(relationship, first, members)
        lead = first ? "#{"}" if members},\"relationships\":{" : "},"
        "#{lead}#{quoted(relationship.key)}:{\"data\":"
      end

      def name(member)
        "#{quoted(member.key)}:".freeze
      end

      def link(definition)
        "{\"type\":#{quoted(definition.type)},\"id\":".freeze
      end

      def link_end(_relationship)
        "}"
      end

      def child(node)
        node && plan.nodes.index { |other| other.equal?(node) }
      end

      def quoted(name)
        @text.append(+"", name.to_s)
      end
    end
  end
end
