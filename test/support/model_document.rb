# frozen_string_literal: true

require "castellan/verify"
require_relative "model_values"

module Castellan
  module TestSupport
    # Builds a document as a Hash without rows and encoders; the oracle of the tests.
    #
    #   ModelDocument.differences(UserResource.document(User.all))   # => [] if rows and models are equal
    #   ModelDocument.new(document).tree                             # => { "data" => [{ "type" => "users", … }] }
    #
    # Calls the readers of the records in the scope and loads their associations lazily.
    class ModelDocument
      # @param document [Document]
      # @return [Array<Verify::Difference>]
      def self.differences(document)
        models = new(document)
        facts = Verify::Facts.new(document.rendering.plan, models.unordered, models.ordered?)
        rows = facts.of(JSON.parse(document.to_json))
        Verify::Facts.differences(rows, facts.of(JSON.parse(JSON.generate(models.tree))), &:itself)
      end

      # Stands for the value of a per-viewer attribute, because models do not have it.
      Hole = Struct.new(:index, :id)

      # @return [Object] the document
      # @return [Array<Array(String, String)>] types and members whose lists have no defined order
      # @return [Array<Object>] the records of the primary data
      attr_reader :tree, :unordered, :records

      # @param document [Document]
      def initialize(document)
        @document = document.rendering
        @plan = @document.plan
        @values = ModelValues.new(@document.viewer, @document.scopes)
        @unordered = []
        @records = primary
        @records = @records.first(1) unless @document.collection?
        @tree = @plan.format == :nested ? nested : json_api
      end

      def ordered?
        scope = @document.paged
        return true unless Rows.scope?(scope)

        order = scope.respond_to?(:order_values) ? scope.order_values : scope.opts[:order]
        !order.nil? && !order.empty?
      end

      private

      # @return [Array<Resource::Definition, nil>, nil] see {Rows::PlanScopes#along}
      def scoped_along(node, member)
        Rows::PlanScopes.of(@plan, @document.adapter).along(node.columns[member.positions.first]) if member.positions.any?
      end

      def primary
        scope = @document.paged
        return scope.to_a if scope.is_a?(Rows::Records)

        scope = scope.relation if scope.is_a?(Rows::Ids::Chosen)
        scope.respond_to?(:klass) ? scope.klass.uncached { @document.records } : @document.records
      end

      def nested
        objects = @records.map { |record| nested_object(record, @plan.root) }
        @document.collection? ? objects : objects.first
      end

      def nested_object(record, node)
        object = { "id" => @values.plain_id(record, node.definition.id_column) }
        object.merge!(attributes(record, node))
        node.edges.select { |edge| edge.included? && edge.written && shown?(record, node, edge) }.each do |edge|
          objects = targets(record, node, edge).filter_map { |found, _, inner| nested_object(found, inner) if inner }
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
        relationships = node.edges.select { |edge| edge.written && shown?(record, node, edge) }
        object["relationships"] = relationships.to_h { |edge| relationship(record, node, edge) } if relationships.any?
        object.merge!(around(record, node, :link, :meta, []))
      end

      def relationship(record, node, edge)
        data = edge.data ? { "data" => linkage(record, node, edge) } : {}
        data.merge!(around(record, node, :edge_link, :edge_meta, [edge.relationship.name]))
        [edge.relationship.key, data.empty? ? { "meta" => {} } : data]
      end

      # The links and meta of a record, or of one of its relationships.
      def around(record, node, link, meta, owner)
        own = node.asides.select { |aside| aside.name.is_a?(Array) && aside.name.first(owner.size) == owner }
        links = own.select { |aside| aside.kind == link }.to_h { |aside| [aside.name.last.to_s, @values.computed(record, aside.computed)] }
        described = own.find { |aside| aside.kind == meta }&.then { |aside| @values.computed(record, aside.computed) }
        { "links" => (links if links.any?), "meta" => described }.compact
      end

      # Evaluates conditions that use the row; conditions that use only the viewer are part of the plan.
      def shown?(record, node, edge)
        condition(record, node, :edge_if, edge.relationship.name)
      end

      def condition(record, node, kind, name)
        aside = node.asides.find { |one| one.kind == kind && one.name == name }
        aside.nil? || (@values.computed(record, aside.computed) ? true : false)
      end

      def attributes(record, node)
        shown = node.members.select { |member| condition(record, node, :attribute_if, member.attribute.name) }
        shown.to_h do |member|
          attribute = member.attribute
          next [attribute.key, hole(attribute, record, node)] if attribute.source == :viewer

          [attribute.key, @values.attribute(record, attribute, scoped_along(node, member))]
        end
      end

      def hole(attribute, record, node)
        Hole.new(@plan.holes.index { |hole| hole.equal?(attribute) }, id(record, node))
      end

      def id(record, node)
        @values.id(record, node.definition.id_column)
      end

      def linkage(record, node, edge)
        links = targets(record, node, edge).map { |found, definition, _|
          { "type" => definition.type.to_s, "id" => @values.id(found, definition.id_column) }
        }
        edge.relationship.to_many? ? links : links.first || dangling(record, node, edge)
      end

      # A dangling foreign key appears as linkage, unless the related records are included.
      def dangling(record, node, edge)
        return if edge.included? || !node.definition.model || edge.relationship.block

        adapter = Rows.for(node.definition.model)
        association = adapter.association(edge.relationship.association_name)
        definition = keyed(record, edge, association) if association && adapter.instances.stored?([record])
        id = record.public_send(association.owner_key) if definition && definition.scope.nil?
        id && { "type" => definition.type.to_s, "id" => id.to_s }
      end

      # @return [Resource::Definition, nil] the definition of the records that the foreign key refers to, if
      #   it has no scope
      def keyed(record, edge, association)
        definition = edge.relationship.definitions.first
        return (definition if association.foreign_key_of?(definition.id_column)) unless edge.alternatives

        kind = edge.relationship.kinds.index { |one| association.type_name(one) == record.public_send(association.type_column) }
        definition = kind && edge.relationship.definitions[kind]
        definition unless definition.nil? || Rows.for(definition.model).scopes.hide_rows?
      end

      def related(record, node, edge)
        place = [node.definition.type.to_s, edge.relationship.key]
        @unordered << place unless @unordered.include?(place) || @values.ordered?(record, edge.relationship)
        @values.related(record, edge.relationship)
      end

      # @return [Array<Array(Object, Resource::Definition, Plan::Node)>] related records, their definitions,
      #   and their nodes if they are included
      def targets(record, node, edge)
        definitions = edge.relationship.definitions
        nodes = edge.alternatives || [edge.node]
        all = related(record, node, edge).map do |found|
          kind = edge.alternatives ? Rows::RecordReader::Links.kind_of(edge.relationship, found) : 0
          [found, definitions[kind], nodes[kind]]
        end
        all.select { |found, definition, _| @values.visible?(found, definition) }
      end

      # Visits the primary records in order. Records below a related record come before it. Visits none twice.
      def included(data)
        known = data.to_h { |object| [object.values_at("type", "id"), true] }
        walked = {}
        @records.each_with_object([]) { |record, found| walk(record, @plan.root, known, walked, found) }
      end

      def walk(record, node, known, walked, found)
        node.edges.select { |edge| edge.included? && shown?(record, node, edge) }.each do |edge|
          targets(record, node, edge).each { |inner, _, below| visit(inner, below, known, walked, found) if below }
        end
      end

      def visit(record, node, known, walked, found)
        key = [node, id(record, node)]
        return if walked[key]

        walked[key] = true
        walk(record, node, known, walked, found)
        take(record, node, known, found)
      end

      def take(record, node, known, found)
        key = [node.definition.type.to_s, id(record, node)]
        found << object(record, node) unless known[key]
        known[key] = true
      end
    end
  end
end
