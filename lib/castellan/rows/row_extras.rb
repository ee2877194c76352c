# frozen_string_literal: true

module Castellan
  module Rows
    # Computes for each row which members are written, and the bytes of links and meta objects.
    #
    #   RowExtras.of(node, adapter, -> { ids }) { |aside| values }   # => Plan::RowSet::Asides or nil
    class RowExtras
      # @param ids [#call] returns the id of each row
      # @yieldparam aside [Plan::Node::Aside]
      # @yieldreturn [Array<Object>] the computed values, one for each row
      # @return [Plan::RowSet::Asides, nil]
      def self.of(node, adapter, ids, &values)
        new(node, adapter, ids.call, values).call unless node.asides.empty?
      end

      def initialize(node, adapter, ids, values)
        @node = node
        @adapter = adapter
        @ids = ids
        @values = node.asides.map { |aside| [aside, values.call(aside)] }
      end

      # @return [Plan::RowSet::Asides]
      def call
        members = truths(:attribute_if) { |owner| @node.members.index { |member| member.attribute.name == owner } }
        edges = truths(:edge_if) { |owner| index(owner) }
        around = @values.select { |aside, _| %i[edge_link edge_meta].include?(aside.kind) }.group_by { |aside, _| index(aside.owner) }
        Plan::RowSet::Asides.new(members, edges, after(@values.select { |aside, _| %i[link meta].include?(aside.kind) }),
                                 around.to_h { |index, values| [index, after(values, alone: !@node.edges[index].data)] })
      end

      private

      def index(owner)
        @node.edges.index { |edge| edge.relationship.name == owner }
      end

      def truths(kind)
        @values.filter_map { |aside, values| [yield(aside.owner), values] if aside.kind == kind }.to_h
      end

      # @param alone [Boolean] whether the object has no other members and so needs an empty meta
      # @return [Array<String>, nil] `,"links":{…},"meta":{…}` for each row
      def after(values, alone: false)
        return if values.empty?

        links, metas = values.partition { |aside, _| %i[link edge_link].include?(aside.kind) }
        written = metas.map { |_, found| texts("meta", found) }
        written.unshift(texts("links", links_of(links))) unless links.empty?
        written.transpose.map { |texts| (text = texts.join).empty? && alone ? ",\"meta\":{}" : text }
      end

      def links_of(links)
        Array.new(@ids.size) { |row| links.to_h { |aside, values| [aside.name.last, values[row]] } }
      end

      # A block omits a meta object by returning nil.
      def texts(member, values)
        texts = JSONValue.texts(values, @adapter, @node, member) { |row| @ids[row] }
        texts.map { |text| text == "null" ? "" : ",\"#{member}\":#{text}" }
      end
    end
  end
end
