# frozen_string_literal: true

module Castellan
  module Plan
    # Compiles the shape of a request into a {FetchPlan} of columns, linkage and included records.
    class Compiler
      def initialize(definition, request)
        @definition = definition
        @request = request
        @included = {}.compare_by_identity
      end

      # @return [FetchPlan]
      def call
        note_included([@definition, *@definition.types], @request.include) if @request.format == :json_api
        root = @definition.several_types? ? of_types : node(@definition, @request.include, "")
        FetchPlan.new(root: root, format: @request.format, signature: @request.signature, compound: @request.includes_nothing?,
                      for_viewers: root.each.any? { |node| node.definition.for_viewers? })
      end

      private

      # Each row of the collection has an edge to itself as a resource of its type.
      def of_types
        nodes = @definition.types.map { |definition| node(definition, @request.include, "") }
        edge = Node::Edge.new(@definition.itself, nil, false, true, nodes.freeze)
        Node.new(definition: @definition, path: "", columns: [Node::Column.new([], @definition.id_column)], members: [], edges: [edge])
      end

      def node(definition, tree, path)
        names = @request.fields.of(definition)
        columns = [Node::Column.new([], definition.id_column)]
        members = attributes(definition, names).map { |attribute| member(attribute, columns) }
        edges = edges(definition, names, tree, path)
        Node.new(definition: definition, path: path, columns: columns, members: members, edges: edges,
                 asides: asides(definition, members, edges, columns), cursors: path.empty? && cursors?)
      end

      # Only a resource with `format :nested` may have an attribute of this name.
      def attributes(definition, names)
        found = definition.attributes.values_at(*(names & definition.attributes.keys))
        @request.format == :json_api ? found.reject { |attribute| attribute.key == "type" } : found
      end

      def cursors? = @request.format == :json_api && @definition.paging&.cursors

      def member(attribute, columns)
        Node::Member.new(attribute, positions(attribute.path, attribute.columns, columns))
      end

      def positions(path, names, columns)
        (names || []).map { |name|
          column = Node::Column.new(path, name)
          columns.index(column) || columns.push(column).size - 1
        }.freeze
      end

      def edges(definition, names, tree, path)
        definition.relationships.each_value.filter_map do |relationship|
          below = tree[relationship.name] if @request.included?(definition, relationship.name)
          written = names.include?(relationship.name) && member?(relationship, below)
          edge(relationship, below, written, path.empty? ? relationship.name.name : "#{path}.#{relationship.name}") if written || below
        end
      end

      # A record may be found at several places (include=owner.students.owner) and is written once, as at one of them.
      # So if a `lazy:` relationship is included anywhere, all records of the type have its linkage (JSON:API 1.1,
      # "Compound Documents": full linkage).
      def note_included(definitions, tree)
        definitions.each do |definition|
          definition.relationships.each_value do |relationship|
            below = tree[relationship.name] or next
            @included[relationship] = true
            note_included(relationship.definitions, below)
          end
        end
      end

      def data?(relationship, below) = !below.nil? || !relationship.lazy? || @included.key?(relationship)

      # JSON:API 1.1, "Relationships": a relationship object has linkage, links or meta.
      def member?(relationship, below)
        data?(relationship, below) || relationship.links.any? || !relationship.meta.nil?
      end

      def edge(relationship, below, written, path)
        nodes = relationship.definitions.map { |definition| below && node(definition, below, path) }
        data = data?(relationship, below)
        return Node::Edge.new(relationship, nil, written, data, nodes.freeze) if relationship.polymorphic?

        Node::Edge.new(relationship, nodes.first, written, data)
      end

      def asides(definition, members, edges, columns)
        found = members.map { |member| [:attribute_if, member.attribute.name, member.attribute.condition&.by_row] }
        edges.each { |edge| found.concat(asides_of(edge.relationship, edge.written)) }
        found.concat(around(definition.links, definition.meta, :link, :meta, nil)) if @request.format == :json_api
        found.filter_map do |kind, name, computed|
          Node::Aside.new(kind, name, computed, positions([].freeze, computed.columns, columns)) if computed
        end
      end

      # The condition also decides whether a relationship that sparse fields leave out is included.
      def asides_of(relationship, written)
        condition = [:edge_if, relationship.name, relationship.condition&.by_row]
        return [condition] unless written && @request.format == :json_api

        [condition, *around(relationship.links, relationship.meta, :edge_link, :edge_meta, relationship.name)]
      end

      def around(links, meta, link, kind, owner)
        [*links.map { |name, computed| [link, [*owner, name].freeze, computed] }, [kind, [*owner].freeze, meta]]
      end
    end
  end
end
