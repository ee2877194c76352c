# frozen_string_literal: true

module Castellan
  module Plan
    # Compiles a request's shape into a {FetchPlan}: which columns of each type, which links, which included records.
    # Runs once for each shape.
    class Compiler
      def initialize(definition, request)
        @definition = definition
        @request = request
      end

      # @return [FetchPlan]
      def call
        FetchPlan.new(root: node(@definition, @request.include, ""), format: @request.format, signature: @request.signature)
      end

      private

      def node(definition, tree, path)
        names = @request.fields.of(definition)
        columns = [Column.new([], definition.id_column)]
        members = definition.attributes.values_at(*(names & definition.attributes.keys)).map { |attribute| member(attribute, columns) }
        Node.new(definition: definition, path: path, columns: columns, members: members, edges: edges(definition, names, tree, path))
      end

      def member(attribute, columns)
        positions = (attribute.columns || []).map do |name|
          column = Column.new(attribute.path, name)
          columns.index(column) || columns.push(column).size - 1
        end
        Node::Member.new(attribute, positions.freeze)
      end

      def edges(definition, names, tree, path)
        definition.relationships.each_value.filter_map do |relationship|
          written = names.include?(relationship.name)
          below = tree[relationship.name]
          next unless written || below

          target = node(relationship.definition, below, path.empty? ? relationship.name.name : "#{path}.#{relationship.name}") if below
          Node::Edge.new(relationship, target, written)
        end
      end
    end
  end
end
