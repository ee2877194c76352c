# frozen_string_literal: true

module Castellan
  module Plan
    # Describes the rows of the primary data, or of one include path, that a plan reads. Frozen.
    #
    # `columns[0]` is the id. `members` are the written attributes with the positions of their columns.
    # `edges` are the relationships, each with the node of its included records.
    class Node
      # A column of the node's table, or of the table at the end of a to-one path. Frozen.
      #
      #   Column.new([], :email)          # users.email
      #   Column.new([:employee], :id)    # the id of the user's employee
      Column = Struct.new(:path, :name) do
        def initialize(*)
          super
          path.freeze
          freeze
        end

        # @return [Boolean] whether the column is in the node's own table
        def own? = path.empty?
      end
      # A written attribute, and the positions of its columns in the row.
      Member = Struct.new(:attribute, :positions)
      # A relationship and the node of its included records (nil: linkage only).
      #
      # `written` is false if a sparse fieldset omits the member but its records are included (JSON:API 1.1,
      # "Compound Documents": the only exception to full linkage). `data` is false if no linkage is written
      # (`lazy:`). A polymorphic relationship has `alternatives`: for each definition a node or nil.
      Edge = Struct.new(:relationship, :node, :written, :data, :alternatives) do
        def initialize(relationship, node = nil, written = true, data = true, alternatives = nil) # rubocop:disable Style/OptionalBooleanParameter
          super
        end

        # @return [Array<Node>] the nodes of the included records
        def nodes = [node, *alternatives].compact

        def included? = nodes.any?

        # @return [Edge] with the same linkage, without included records
        def alone = Edge.new(relationship, nil, written, data, alternatives&.map { nil }.freeze)

        # @return [Boolean] whether all rows write the relationship in the same way
        def regular? = alternatives.nil? && data
      end
      # A condition, link or meta object that is computed for each row.
      #
      # `kind` is :attribute_if or :edge_if, :link or :meta of the resource, :edge_link or :edge_meta of
      # a relationship. `name` is the attribute or relationship, followed by the link's name.
      # `positions` are the columns that it reads.
      Aside = Struct.new(:kind, :name, :computed, :positions) do
        # @return [Boolean] whether it is a link or the meta object of the resource itself
        def after? = %i[link meta].include?(kind)

        # @return [Symbol, nil] the attribute or relationship that it belongs to
        def owner
          Array(name).first unless after?
        end

        # @return [String] its name in `explain`
        def label = [kind.name.sub("edge_", "").sub("attribute_", ""), *name].join(" ")
      end

      # @return [Resource::Definition]
      # @return [String] the include path, "" for the primary data, "comments.author" below it
      # @return [Array<Column>]
      # @return [Array<Member>]
      # @return [Array<Edge>]
      # @return [Array<Aside>]
      # @return [Boolean] whether the node's page writes a cursor for each item
      attr_reader :definition, :path, :columns, :members, :edges, :asides, :cursors

      def initialize(definition:, path:, columns:, members:, edges:, asides: [], cursors: false)
        @definition = definition
        @path = path
        @columns = columns.freeze
        @members = members.each(&:freeze).freeze
        @edges = edges.each(&:freeze).freeze
        @asides = asides.each(&:freeze).freeze
        @cursors = cursors
        freeze
      end

      # @return [Enumerator<Node>] this node and all below it, parents first
      def each(&block)
        return enum_for(:each) unless block

        yield self
        edges.each { |edge| edge.nodes.each { |node| node.each(&block) } }
      end

      # @return [Node] without included records, with the same linkage
      def alone
        Node.new(definition: definition, path: path, columns: columns.dup, members: members.dup, asides: asides.dup, cursors: cursors,
                 edges: edges.select(&:written).map(&:alone))
      end

      # @return [Boolean] whether all rows have the same members, and each relationship has one type
      def regular? = asides.all?(&:after?) && edges.all?(&:regular?)

      # @return [Boolean] whether rows end with links or a meta object
      def after? = cursors || asides.any?(&:after?)
    end
  end
end
