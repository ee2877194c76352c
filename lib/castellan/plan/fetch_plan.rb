# frozen_string_literal: true

module Castellan
  module Plan
    # What will be read and written for one shape of request. Frozen, and the same object for each request of that shape,
    # so that what is derived from it (statements, templates) can be derived once.
    #
    # It holds shapes only: no SQL, no value of a request (those are {Request}'s).
    class FetchPlan
      # @return [Node] the primary data
      # @return [Symbol] :json_api or :nested
      # @return [Array<Node>] all nodes, parents first
      # @return [String] canonical text of the shape: equal plans have equal signatures
      # @return [Array<Resource::Attribute>] the per-viewer attributes of all nodes, in the order of the nodes: the holes
      attr_reader :root, :format, :nodes, :signature, :holes

      def initialize(root:, format:, signature:)
        @root = root
        @format = format
        @nodes = root.each.to_a.freeze
        @signature = signature.dup.freeze
        @holes = @nodes.flat_map { |node| node.members.map(&:attribute).select { |attribute| attribute.source == :viewer } }.freeze
        @derived = BoundedCache.new(limit: 1_000)
        freeze
      end

      # Keeps what another part of the library computes from the plan (a template, a statement), as long as the plan lives.
      # @param key [Object] few and fixed: nothing of a request
      # @return what the block returned the first time
      def derive(key)
        @derived.fetch(key) { yield }
      end

      # @return [Boolean] whether related records are written as well
      def compound?
        nodes.size > 1
      end
    end
  end
end
