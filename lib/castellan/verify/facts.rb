# frozen_string_literal: true

module Castellan
  module Verify
    # Splits a document into facts, so that two can be compared whatever the order of lists that have none.
    #
    #   Facts.new(plan, unordered).of(tree)
    #   # => { ["users", "7", "email"] => "ada@example.com", ["users", "7", "roles"] => [["roles", "1"]], … }
    #
    # In the nested format a record has its facts at each place where it is written.
    class Facts
      ABSENT = :castellan_absent
      # What identifies a resource.
      KEYS = %w[type id].freeze
      private_constant :KEYS

      # Takes every list as one without an order.
      module Every
        def self.include?(_place) = true
      end
      private_constant :Every

      # @param tree [Hash] a document of {Serializer}, which has no plan
      # @return [Hash{Array(String, String, String) => Object}]
      def self.of_serialized(tree)
        new(nil, Every, false).of(tree)
      end

      # @param plan [Plan::FetchPlan, nil]
      # @param unordered [Array<Array(String, String)>] types and members
      # @param ordered [Boolean] whether the primary data has an order
      def initialize(plan, unordered, ordered)
        @plan = plan
        @unordered = unordered
        @ordered = ordered
      end

      # @param tree [Object] what JSON.parse returns
      # @return [Hash{Array(String, String, String) => Object}]
      def of(tree)
        @found = {}
        @plan&.format == :nested ? nested(tree) : json_api(tree)
        @found
      end

      private

      def json_api(tree)
        data = tree["data"].is_a?(Array) ? tree["data"] : [tree["data"]].compact
        order(data) if @plan
        data.each { |object| object(object, "") }
        (tree["included"] || []).each { |object| object(object, "included ") }
      end

      def object(object, where)
        type, id = object.values_at("type", "id")
        @found[["#{where}#{type}", id, nil]] = true
        (object["attributes"] || {}).each { |key, value| @found[["#{where}#{type}", id, key]] = value }
        (object["relationships"] || {}).each { |key, value| relationship("#{where}#{type}", id, key, value, type) }
        around("#{where}#{type}", id, "", object)
      end

      # A link and a relationship may have one name: the parts of a relationship have its name in front.
      def relationship(place, id, key, value, type)
        @found[[place, id, key]] = value.key?("data") ? linkage(type, key, value["data"]) : ABSENT
        around(place, id, "#{key} ", value)
      end

      def around(place, id, owner, object)
        object.slice("links", "meta").each { |key, value| @found[[place, id, "#{owner}#{key}"]] = value }
      end

      def linkage(type, key, data)
        return data unless data.is_a?(Array)

        links = data.map { |link| link.values_at(*KEYS) }
        @unordered.include?([type, key]) ? links.sort : links
      end

      def nested(tree)
        data = tree.is_a?(Array) ? tree : [tree].compact
        order(data)
        data.each { |object| nested_object(object, @plan.root, @plan.root.definition.type.to_s) }
      end

      def nested_object(object, node, place)
        id = object["id"].to_s
        @found[[place, id, nil]] = true
        node.members.each { |member| @found[[place, id, member.attribute.key]] = object.fetch(member.attribute.key, ABSENT) }
        node.edges.select { |edge| edge.included? && edge.written && object.key?(edge.relationship.key) }.each do |edge|
          below(object, node, edge, "#{place} #{id} #{edge.relationship.key}")
        end
      end

      def below(object, node, edge, place)
        key = edge.relationship.key
        value = object[key]
        objects = value.is_a?(Array) ? value : [value].compact
        ids = objects.map { |inner| inner["id"].to_s }
        ids = ids.sort if @unordered.include?([node.definition.type.to_s, key])
        @found[[place, nil, key]] = value.is_a?(Array) ? ids : ids.first
        return objects.each { |inner| nested_object(inner, edge.node, place) } if edge.node

        @found[[place, nil, "records"]] = objects.sort_by { |inner| inner["id"].to_s } # the nested format has no types
      end

      def order(data)
        ids = data.map { |object| object["id"].to_s }
        @found[[@plan.root.definition.type.to_s, nil, "order"]] = @ordered ? ids : ids.sort
      end
    end
  end
end
