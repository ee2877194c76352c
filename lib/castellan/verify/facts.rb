# frozen_string_literal: true

module Castellan
  module Verify
    # Splits documents into facts, so that two can be compared regardless of undefined orders.
    #
    #   Facts.new(plan, unordered, true).of(tree)
    #   # => { ["users", "7", "email"] => "ada@example.com", ["users", "7", "roles"] => [["roles", "1"]], … }
    #
    # In the nested format, a record has facts at each place where it appears.
    class Facts
      ABSENT = :castellan_absent

      # @yield one of the documents
      # @yieldreturn [Hash] the document's facts
      # @return [Array<Difference>] a record that is missing in one document is a single difference
      def self.differences(*documents)
        rows, models = documents.map { |document| yield(document) }
        (rows.keys | models.keys).filter_map do |fact|
          values = [rows, models].map { |facts| facts.fetch(fact, ABSENT) }
          type, id, member = fact
          missing = member && id && [rows, models].any? { |facts| !facts.key?([type, id, nil]) }
          Difference.new(type, id, member, *values) unless missing || values[0] == values[1]
        end
      end

      # @param plan [Plan::FetchPlan, nil] nil for a document of {Serializer}
      # @param unordered [Array<Array(String, String)>, nil] types and members of
      #   lists without an order; nil: all lists
      # @param ordered [Boolean] whether the primary data has an order
      def initialize(plan, unordered, ordered)
        @plan = plan
        @unordered = unordered
        @ordered = ordered
      end

      # @param tree [Object] the result of JSON.parse
      # @return [Hash{Array(String, String, String) => Object}]
      def of(tree)
        @found = {}
        nested = @plan&.format == :nested
        data = nested ? tree : tree["data"]
        data = [data].compact unless data.is_a?(Array)
        @found[[@plan.root.definition.type.to_s, nil, "order"]] = ids(data, @ordered) if @plan
        if nested && @plan.several_types?
          @found[[@plan.root.definition.type.to_s, nil, "records"]] = data # the nested format has no types
        elsif nested
          data.each { |object| nested_object(object, @plan.root, @plan.root.definition.type.to_s) }
        else
          data.each { |object| object(object, object["type"]) }
          tree["included"]&.each { |object| object(object, "included #{object["type"]}") }
        end
        @found
      end

      private

      def object(object, place)
        id = object["id"]
        @found[[place, id, nil]] = true
        object["attributes"]&.each { |key, value| @found[[place, id, key]] = value }
        object["relationships"]&.each do |key, value|
          @found[[place, id, key]] = value.key?("data") ? linkage(object["type"], key, value["data"]) : ABSENT
          around(place, id, "#{key} ", value) # a link and a relationship may have the same name
        end
        around(place, id, "", object)
      end

      def around(place, id, owner, object)
        object.slice("links", "meta").each { |key, value| @found[[place, id, "#{owner}#{key}"]] = value }
      end

      def linkage(type, key, data)
        return data unless data.is_a?(Array)

        links = data.map { |link| link.values_at("type", "id") }
        ordered?(type, key) ? links : links.sort
      end

      def nested_object(object, node, place)
        id = object["id"].to_s
        @found[[place, id, nil]] = true
        node.members.each { |member| @found[[place, id, member.attribute.key]] = object.fetch(member.attribute.key, ABSENT) }
        node.edges.each do |edge|
          key = edge.relationship.key
          below(object[key], node, edge, "#{place} #{id} #{key}") if edge.included? && edge.written && object.key?(key)
        end
      end

      def below(value, node, edge, place)
        objects = value.is_a?(Array) ? value : [value].compact
        @found[[place, nil, edge.relationship.key]] = value && ids(objects, ordered?(node.definition.type.to_s, edge.relationship.key))
        return objects.each { |inner| nested_object(inner, edge.node, place) } if edge.node

        @found[[place, nil, "records"]] = objects.sort_by { |inner| inner["id"].to_s } # the nested format has no types
      end

      def ids(objects, ordered)
        ids = objects.map { |object| object["id"].to_s }
        ordered ? ids : ids.sort
      end

      def ordered?(type, key)
        !@unordered.nil? && !@unordered.include?([type, key])
      end
    end
  end
end
