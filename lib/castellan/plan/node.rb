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
      # Documents": the one exception to full linkage).
      Edge = Struct.new(:relationship, :node, :written) do
        def initialize(relationship, node = nil, written = true) # rubocop:disable Style/OptionalBooleanParameter
          super
        end
      end

      # @return [Resource::Definition]
      # @return [String] the include path, "" for the primary data, "comments.author" below it
      # @return [Array<Column>]
      # @return [Array<Member>]
      # @return [Array<Edge>]
      attr_reader :definition, :path, :columns, :members, :edges

      def initialize(definition:, path:, columns:, members:, edges:)
        @definition = definition
        @path = path
        @columns = columns.freeze
        @members = members.each(&:freeze).freeze
        @edges = edges.each(&:freeze).freeze
        freeze
      end

      # @return [Enumerator<Node>] this node and all below it, parents first, in the order of the include
      def each(&block)
        return enum_for(:each) unless block

        yield self
        edges.each { |edge| edge.node&.each(&block) }
      end
    end
  end
end
