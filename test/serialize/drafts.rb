# frozen_string_literal: true

require "castellan/resource"

module Castellan
  # Builds plans and row sets by hand for the tests of the encoders.
  #
  #   roles = draft("roles", { id: :integer, title: :text }, [[1, "admin"]])
  #   users = draft("users", { id: :integer, email: :text }, [[7, "ada@example.com", "1"]],
  #                 edges: [edge(:roles, InColumn.new(2), many: true, type: "roles", to: roles)])
  #   plan, row_set = build(users)
  #
  # A column with an Array as coder is computed, one JSON text per row; the coder :viewer makes a hole.
  module Drafts
    InColumn = Plan::RowSet::InColumn
    Pairs = Plan::RowSet::Pairs
    Lists = Plan::RowSet::Lists
    # `asides` is nil or a Plan::RowSet::Asides: conditions, links and meta objects.
    Draft = Struct.new(:type, :coders, :rows, :edges, :asides)
    # For several types, `type` and `to` are arrays, and the pairs have a third column, the type's position.
    DraftEdge = Struct.new(:name, :links, :many, :type, :to, :written)
    Definition = Struct.new(:type) do
      def written_as = [self]
      def several_types? = false
    end
    # The target resource of links, one per type.
    TARGETS = Hash.new do |known, type|
      known[type] = Class.new(Resource).tap { |resource| resource.define_singleton_method(:definition) { Definition.new(type) } }
    end

    def draft(type, coders, rows, edges: []) = Draft.new(type, coders, rows, edges)

    # @param written [Boolean] false if a sparse fieldset omits the relationship but its records are included
    def edge(name, links, type:, many: false, to: nil, written: true) = DraftEdge.new(name, links, many, type, to, written)

    # @return [Array(FetchPlan, RowSet)]
    def build(root, format: :json_api)
      drafts = {}.compare_by_identity
      plan = Plan::FetchPlan.new(root: node(root, drafts), format:, signature: "drafted")
      [plan, Plan::RowSet.new(plan.nodes.map { |node| table(node, drafts.fetch(node)) })]
    end

    def encode(root, format: :json_api, escape: :json, encoder: Serialize::RubyEncoder, **options)
      plan, row_set = build(root, format:)
      encoder.encode(row_set, Serialize::Template.new(plan, escape:), **options)
    end

    private

    def node(draft, drafts)
      edges = draft.edges.map { |edge| plan_edge(edge, drafts) }
      stored = draft.coders.reject { |_, coder| coder == :viewer || coder.is_a?(Array) }.keys
      node = Plan::Node.new(definition: Definition.new(draft.type), path: "", columns: stored.map { |name|
        Plan::Node::Column.new([], name)
      },
                            members: members(draft, stored), edges:, asides: asides(draft.asides))
      drafts[node] = draft
      node
    end

    def plan_edge(edge, drafts)
      return Plan::Node::Edge.new(relationship(edge), edge.to && node(edge.to, drafts), edge.written) unless edge.type.is_a?(Array)

      nodes = edge.to.map { |to| to && node(to, drafts) }
      Plan::Node::Edge.new(relationship(edge), nil, edge.written, true, nodes)
    end

    # The plan's flags for these: whether the node has any.
    def asides(asides)
      return [] unless asides

      kinds = { attribute_if: asides.members, edge_if: asides.edges, link: asides.after, edge_link: asides.edges_after }
      kinds.filter_map { |kind, values| Plan::Node::Aside.new(kind, [kind], nil, []) unless values.nil? || values.empty? }
    end

    def members(draft, stored)
      draft.coders.drop(1).map do |name, coder|
        source = { viewer: :viewer }.fetch(coder) { coder.is_a?(Array) ? :computed : :column }
        attribute = Resource::Attribute.new(name:, key: name.to_s, source:, path: [], columns: [name], block: nil, location: "draft")
        Plan::Node::Member.new(attribute, [stored.index(name)].compact)
      end
    end

    def relationship(edge)
      macro = edge.many ? :has_many : :belongs_to
      targets = TARGETS.values_at(*edge.type)
      Resource::Relationship.new(name: edge.name, key: edge.name.to_s, macro:, owner: nil, location: "draft",
                                 resource: edge.type.is_a?(Array) ? targets : targets.first)
    end

    def table(node, draft)
      computed = draft.coders.values.drop(1).each_with_index.select { |coder, _|
        coder.is_a?(Array)
      }.to_h { |coder, position| [position, coder] }
      Plan::RowSet::Table.new(node:, rows: draft.rows, coders: draft.coders.values.grep(Symbol).reject { |coder| coder == :viewer },
                              links: draft.edges.map(&:links), computed:, asides: draft.asides)
    end
  end
end
