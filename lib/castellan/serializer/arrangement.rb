# frozen_string_literal: true

module Castellan
  module Serializer
    # Puts the members and included records of a document in the order of the fields and includes that were asked for, as
    # jsonapi-serializer does. A plan has the order of the declarations.
    #
    #   arrangement = Arrangement.new(options, reached)
    #   plan = arrangement.plan(compiled)   # the same plan, or a copy with its attributes in another order
    #   arrangement.layout(plan)            # => a {Layout}
    class Arrangement
      # How many copies and layouts of one plan are kept: clients choose the order.
      MOST = 20
      private_constant :MOST

      # @param options [Options]
      # @param reached [Hash{Translation => Set<Symbol>}] the relationships of each whose records are included
      def initialize(options, reached)
        @options = options
        @reached = reached
      end

      # @param compiled [Plan::FetchPlan]
      # @return [Plan::FetchPlan]
      def plan(compiled)
        orders = compiled.nodes.map { |node| order(node) }
        return compiled if orders.none?

        copies = compiled.derive(:arranged) { BoundedCache.new(limit: MOST) }
        copies.fetch(orders) do
          Plan::FetchPlan.new(root: arranged(compiled.root), format: compiled.format, signature: "#{compiled.signature} #{orders}")
        end
      end

      # @param plan [Plan::FetchPlan]
      # @return [Layout]
      def layout(plan)
        walks = plan.nodes.to_h { |node| [node, walk(node)] }.compare_by_identity
        shown = plan.nodes.to_h { |node| [translation(node), chosen(translation(node))] }
        layouts = plan.derive(:layouts) { BoundedCache.new(limit: MOST) }
        layouts.fetch([Serialize.escape, walks.values, shown.values.map { |some| some.map(&:name) }]) do
          Layout.new(plan, shown, walks, escape: Serialize.escape)
        end
      end

      # @param translation [Translation]
      # @return [Array<Relationship>] those that are written with linkage, links or meta, in order; of any other only the key is
      def written(translation)
        included = @reached.fetch(translation)
        chosen(translation).reject { |relationship| bare?(translation, relationship, included) }
      end

      private

      def translation(node)
        node.definition.resource.translation
      end

      def chosen(translation)
        relationships = translation.serializer.relationships_to_serialize || {}
        fieldset = @options.fieldset(translation.serializer.record_type)
        fieldset ? relationships.slice(*fieldset).values : relationships.values
      end

      def bare?(translation, relationship, included)
        translation.association(relationship.name).left? && !relationship.conditional_proc && !included.include?(relationship.name)
      end

      # @return [Array<Symbol>] what is included below that place
      def walk(node)
        node.path.split(".").reduce(@options.tree) { |tree, name| tree.fetch(name.to_sym) }.keys
      end

      # @return [Array<Integer>, nil] of the attributes, where it is another than the plan's
      def order(node)
        fieldset = @options.fieldset(node.definition.type) or return
        positions = fieldset.filter_map { |name| node.members.index { |member| member.attribute.key.to_sym == name } }.uniq
        positions unless positions.each_cons(2).all? { |one, other| one < other }
      end

      def arranged(node)
        members = order(node)&.map { |position| node.members[position] }
        edges = node.edges.map { |edge| edge.dup.tap { |copy| copy.node &&= arranged(copy.node) } }
        Plan::Node.new(definition: node.definition, path: node.path, columns: node.columns.dup, members: members || node.members.dup,
                       edges: edges, asides: node.asides.dup)
      end
    end
  end
end
