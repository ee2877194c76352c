# frozen_string_literal: true

module Castellan
  module Plan
    # One set of rows that a plan reads: the primary data, or what one include path leads to. Frozen once compiled.
    #
    # `columns[0]` is always the id. `members` says what is written of a row and from which columns; `edges` are the
    # relationships whose linkage is written, each with the node of its related records when those are included.
    class Node
      # What is written of a row: an attribute and the positions of its columns in the row.
      Member = Struct.new(:attribute, :positions)
      # A relationship, and the node of the related records when they are included (nil: linkage only). `written` is false
      # where a sparse fieldset leaves the member out while its records are included all the same (JSON:API 1.1, "Compound
      # Documents": the one exception to full linkage), `data` where linkage is written only beside included records. A relationship
      # to several types has `alternatives`: one node, or nil, for each of relationship.definitions.
      Edge = Struct.new(:relationship, :node, :written, :data, :alternatives) do
        def initialize(relationship, node = nil, written = true, data = true, alternatives = nil) # rubocop:disable Style/OptionalBooleanParameter
          super
        end

        # @return [Array<Node>] those of the related records, when they are included
        def nodes
          [node, *alternatives].compact
        end

        # @return [Boolean] whether related records are included
        def included?
          nodes.any?
        end

        # @return [Edge] to the same linkage, with nothing included
        def alone
          Edge.new(relationship, nil, written, data, alternatives&.map { nil }.freeze)
        end

        # @return [Boolean] whether it is written alike in each row
        def regular?
          alternatives.nil? && data
        end
      end
      # What is decided or added for each row: whether a member is written, a link, a meta object. `kind` is :attribute_if or :edge_if,
      # :link or :meta of the resource, :edge_link or :edge_meta of a relationship; `name` is the attribute or relationship and then
      # the link, where there are such; `positions` are the columns of what is computed.
      Aside = Struct.new(:kind, :name, :computed, :positions) do
        # @return [Boolean] whether it is a link or meta object of the resource itself
        def after?
          %i[link meta].include?(kind)
        end

        # @return [Symbol, nil] the attribute or relationship that it belongs to
        def owner
          Array(name).first unless after?
        end

        # @return [String] for whoever reads why models are needed
        def label
          [kind.name.sub("edge_", "").sub("attribute_", ""), *name].join(" ")
        end
      end

      # @return [Resource::Definition]
      # @return [String] the include path, "" for the primary data, "comments.author" below it
      # @return [Array<Column>]
      # @return [Array<Member>]
      # @return [Array<Edge>]
      # @return [Array<Aside>]
      attr_reader :definition, :path, :columns, :members, :edges, :asides

      def initialize(definition:, path:, columns:, members:, edges:, asides: [])
        @definition = definition
        @path = path
        @columns = columns.freeze
        @members = members.each(&:freeze).freeze
        @edges = edges.each(&:freeze).freeze
        @asides = asides.each(&:freeze).freeze
        freeze
      end

      # @return [Enumerator<Node>] this node and all below it, parents first, in the order of the include
      def each(&block)
        return enum_for(:each) unless block

        yield self
        edges.each { |edge| edge.nodes.each { |node| node.each(&block) } }
      end

      # @return [Node] itself without what it leads to: linkage is written all the same, and nothing is included
      def alone
        Node.new(definition: definition, path: path, columns: columns.dup, members: members.dup, asides: asides.dup,
                 edges: edges.select(&:written).map(&:alone))
      end

      # @return [Boolean] whether each row is written in the same way: same members, one type for each relationship
      def regular?
        asides.all?(&:after?) && edges.all?(&:regular?)
      end

      # @return [Boolean] whether links or a meta object stand at the end of each row
      def after?
        asides.any?(&:after?)
      end
    end
  end
end
