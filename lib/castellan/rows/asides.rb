# frozen_string_literal: true

module Castellan
  module Rows
    # What is decided or added for each row of a node: which members are written, and the bytes of links and meta objects.
    #
    #   Asides.of(node, adapter, size) { |aside| values }   # => Plan::RowSet::Asides, nil where the node has none
    class Asides
      # @param size [Integer] how many rows there are
      # @yieldparam aside [Plan::Node::Aside]
      # @yieldreturn [Array<Object>] what was computed, one value a row
      # @return [Plan::RowSet::Asides, nil]
      def self.of(node, adapter, size, &values)
        new(node, adapter, size, values).call unless node.asides.empty?
      end

      def initialize(node, adapter, size, values)
        @node = node
        @adapter = adapter
        @size = size
        @values = node.asides.map { |aside| [aside, values.call(aside)] }
      end

      # @return [Plan::RowSet::Asides]
      def call
        members = truths(:attribute_if) { |owner| @node.members.index { |member| member.attribute.name == owner } }
        edges = truths(:edge_if) { |owner| index(owner) }
        around = @values.select { |aside, _| %i[edge_link edge_meta].include?(aside.kind) }.group_by { |aside, _| index(aside.owner) }
        Plan::RowSet::Asides.new(members, edges, after(@values.select { |aside, _| %i[link meta].include?(aside.kind) }),
                                 around.transform_values { |values| after(values) })
      end

      private

      def index(owner)
        @node.edges.index { |edge| edge.relationship.name == owner }
      end

      def truths(kind)
        @values.filter_map { |aside, values| [yield(aside.owner), values] if aside.kind == kind }.to_h
      end

      # @return [Array<String>, nil] `,"links":{…},"meta":{…}` for each row
      def after(values)
        return if values.empty?

        links, metas = values.partition { |aside, _| %i[link edge_link].include?(aside.kind) }
        Array.new(@size) { |row| links_of(links, row) + metas.map { |_, values| meta(values[row]) }.join }
      end

      def links_of(links, row)
        links.empty? ? "" : ",\"links\":#{@adapter.json(links.to_h { |aside, values| [aside.name.last, values[row]] })}"
      end

      def meta(value)
        value.nil? ? "" : ",\"meta\":#{@adapter.json(value)}"
      end
    end
  end
end
