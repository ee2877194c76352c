# frozen_string_literal: true

module Castellan
  module Plan
    # Describes the reads and the output for one shape of request. Frozen.
    #
    # All requests of a shape share one plan, so that `derive` builds statements and templates once. Contains
    # no SQL and no values of a request; these are in {Request}.
    class FetchPlan
      include BoundedCache::Derived

      # @return [Node] the primary data
      # @return [Symbol] :json_api or :nested
      # @return [Array<Node>] all nodes, parents first
      # @return [String] canonical string of the shape; equal plans have equal signatures
      # @return [Array<Resource::Attribute>] the per-viewer attributes of all nodes, which become placeholders
      # @return [Boolean] whether an `if:` hides any of the plan's members from
      #   some viewers, see {Request#seen_by}
      attr_reader :root, :format, :nodes, :signature, :holes, :for_viewers
      alias for_viewers? for_viewers

      def initialize(root:, format:, signature:, for_viewers: false, compound: false)
        @root = root
        @compound = compound
        @format = format
        @nodes = root.each.to_a.freeze
        @signature = signature.dup.freeze
        @holes = @nodes.flat_map { |node| node.members.map(&:attribute).select { |attribute| attribute.source == :viewer } }.freeze
        @for_viewers = for_viewers
        @derived = BoundedCache.new(limit: 1_000)
        freeze
      end

      # @return [Boolean] whether the document has the member `included`, which may be empty
      def compound? = @compound || nodes.size > (several_types? ? 1 + root.edges.first.nodes.size : 1)

      # @return [Boolean] whether primary rows are written as resources of several
      #   types, through the root's only edge
      def several_types? = root.edges.first&.relationship&.itself? || false
    end
  end
end
