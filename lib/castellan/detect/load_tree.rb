# frozen_string_literal: true

module Castellan
  module Detect
    # Reconstructs the records loaded at one line and their preloads: `taxonomies → root → children`.
    #
    #   LoadTree.new(site, tally.groups).nodes.map(&:path)   # => [[], [:root], [:root, :children]], in load order
    #
    # A preload belongs to an association of earlier records at the same line, whose key it queries.
    class LoadTree
      # `path` is the chain of associations from the class `root`, loaded first, to `model`; `names` are its
      # preloaded associations.
      Node = Struct.new(:root, :model, :path, :names, :order, :times, keyword_init: true)
      DEEPEST = 5
      private_constant :DEEPEST

      attr_reader :nodes

      def initialize(site, groups)
        @nodes = []
        @joins = []
        @left = {} # preloads that ran more often than the records before them explain
        groups.each { |group| add(group) if group.association.nil? && group.sites.key?(site) && group.shape.records? }
      end

      private

      def add(group)
        shape = group.shape
        model = shape.models.first or return @joins << shape.table
        owners = group.preload? ? owners(shape, group.count) : []
        return grow(model, [], model, group) if owners.empty?

        owners.each do |node, link|
          node.names << link.name
          grow(node.root, [*node.path, link.name], link.target || model, group)
        end
        left = group.count - owners.sum { |node, _link| node.times }
        @left[shape] = left if left.positive?
      end

      def grow(root, path, model, group)
        same = @nodes.find { |node| node.root == root && node.path == path }
        return same.times += group.count if same && (path.any? || group.shape.paged?)

        @nodes << Node.new(root: root, model: model, path: path, names: [], order: group.order, times: group.count)
        @left.each_key { |shape| preloaded_again(@nodes.last, shape) }
      end

      # A preload that already ran for other records of the class counts the later ones as well.
      def preloaded_again(node, shape)
        link = link(node, shape) or return
        node.names << link.name
        @left.delete(shape) unless (@left[shape] -= node.times).positive?
      end

      def owners(shape, count)
        found = @nodes.select { |node| node.path.size < DEEPEST }.filter_map { |node| (link = link(node, shape)) && [node, link] }
        found.take_while { |node, _link| count.positive? && (count -= node.times) }
      end

      def link(node, shape)
        library = shape.library
        return unless Detect.models(node.model) == library

        links = library.links(node.model).reject { |link| node.names.include?(link.name) }
        links.find { |link| asks?(link, shape) } || polymorphic(library, node, shape)
      end

      def asks?(link, shape)
        return false unless link.target && link.table == shape.table
        return keyed?(shape, link.keys.first) && (link.type.nil? || shape.equal.include?(link.type)) if link.through.nil?
        return shape.list_column == link.keys.first if shape.tables.include?(link.through)

        @joins.include?(link.through) && keyed?(shape, shape.library.primary_key(link.target))
      end

      def keyed?(shape, key) = shape.list_column == key || shape.equal.include?(key)

      def polymorphic(library, node, shape)
        name = library.polymorphic(node.model).first
        library.link(node.model, name) if name && keyed?(shape, library.primary_key(shape.models.first))
      end
    end
  end
end
