# frozen_string_literal: true

module Castellan
  module Verify
    # A document by the models: the records of its scope, their readers and their associations, as a Hash. Slow on purpose: nothing is
    # preloaded, because what an association answers when it is loaded lazily is the truth.
    #
    #   models = Models.new(document)
    #   models.tree      # => { "data" => [{ "type" => "users", "id" => "1", … }], "included" => […] }
    #   models.unordered # => [["users", "roles"]]: lists that the models give no order to
    class Models
      # Stands for the value of a per-viewer attribute, which no model knows.
      Hole = Struct.new(:index, :id)

      # @return [Object] the document
      # @return [Array<Array(String, String)>] types and members whose lists may come in any order
      # @return [Array<Object>] the records of the primary data
      attr_reader :tree, :unordered, :records

      # @param document [Document]
      def initialize(document)
        @document = document
        @plan = document.plan
        @values = ModelValues.new(document.viewer)
        @unordered = []
        @records = primary
        @records = @records.first(1) unless document.collection?
        @tree = @plan.format == :nested ? nested : json_api
      end

      # @return [Boolean] whether the scope says in which order its records come
      def ordered?
        scope = @document.paged
        return true unless Rows.scope?(scope)

        order = scope.respond_to?(:order_values) ? scope.order_values : scope.opts[:order]
        !order.nil? && !order.empty?
      end

      private

      def primary
        scope = @document.paged
        scope = scope.relation if scope.is_a?(Rows::ChosenIds)
        return scope.klass.uncached { scope.except(:select).to_a.uniq } if scope.respond_to?(:klass)

        scope.respond_to?(:all) ? scope.all.uniq : scope.to_a
      end

      def nested
        objects = @records.map { |record| nested_object(record, @plan.root) }
        @document.collection? ? objects : objects.first
      end

      def nested_object(record, node)
        object = { "id" => @values.plain_id(record, node.definition.id_column) }
        object.merge!(attributes(record, node))
        node.edges.select { |edge| edge.node && edge.written }.each do |edge|
          objects = related(record, node, edge).map { |found| nested_object(found, edge.node) }
          object[edge.relationship.key] = edge.relationship.to_many? ? objects : objects.first
        end
        object
      end

      def json_api
        data = @records.map { |record| object(record, @plan.root) }
        tree = { "data" => @document.collection? ? data : data.first }
        tree["included"] = included(data) if @plan.compound?
        tree
      end

      def object(record, node)
        object = { "type" => node.definition.type.to_s, "id" => id(record, node) }
        attributes = attributes(record, node)
        object["attributes"] = attributes if attributes.any?
        relationships = node.edges.select(&:written).to_h { |edge| [edge.relationship.key, { "data" => linkage(record, node, edge) }] }
        object["relationships"] = relationships if relationships.any?
        object
      end

      def attributes(record, node)
        node.members.to_h do |member|
          attribute = member.attribute
          next [attribute.key, hole(attribute, record, node)] if attribute.source == :viewer

          [attribute.key, @values.attribute(record, attribute)]
        end
      end

      def hole(attribute, record, node)
        Hole.new(@plan.holes.index { |hole| hole.equal?(attribute) }, id(record, node))
      end

      def id(record, node)
        @values.id(record, node.definition.id_column)
      end

      def linkage(record, node, edge)
        definition = edge.relationship.definition
        links = related(record, node, edge).map { |found|
          { "type" => definition.type.to_s, "id" => @values.id(found, definition.id_column) }
        }
        edge.relationship.to_many? ? links : links.first
      end

      def related(record, node, edge)
        place = [node.definition.type.to_s, edge.relationship.key]
        @unordered << place unless @unordered.include?(place) || @values.ordered?(record, edge.relationship)
        @values.related(record, edge.relationship)
      end

      # In the order of the primary records, what a related record leads to before that record itself, each once.
      def included(data)
        known = data.to_h { |object| [object.values_at("type", "id"), true] }
        walked = {}
        @records.each_with_object([]) { |record, found| walk(record, @plan.root, known, walked, found) }
      end

      def walk(record, node, known, walked, found)
        node.edges.select(&:node).each do |edge|
          related(record, node, edge).each do |inner|
            key = [edge.node, id(inner, edge.node)]
            next if walked[key]

            walked[key] = true
            walk(inner, edge.node, known, walked, found)
            take(inner, edge.node, known, found)
          end
        end
      end

      def take(record, node, known, found)
        key = [node.definition.type.to_s, id(record, node)]
        found << object(record, node) unless known[key]
        known[key] = true
      end
    end
  end
end
