# frozen_string_literal: true

require "json"

module Castellan
  module Demo
    # Compares two JSON responses and describes the first difference by the record's id and the member.
    #
    #   Comparison.new(before, after, differs: ["/data/*/relationships/employee"]).difference
    #   # => nil if they are equal, else "users 7, relationships.roles: 2 entries before, 1 entry after"
    #
    # A pattern is a path from the root with segments separated by `/`; `*` stands for any index or member.
    # The values at these paths are removed from both responses. JSON:API does not define an order of
    # `included`, so it is compared by type and id.
    class Comparison
      SHOWN = 60
      private_constant :SHOWN

      # @param before [String] JSON
      # @param after [String] JSON
      # @param differs [Array<String>] patterns
      def initialize(before, after, differs: [])
        @before = before
        @after = after
        @patterns = differs.map { |pattern| pattern.delete_prefix("/").split("/") }
      end

      # @return [String, nil]
      def difference
        before, after = [@before, @after].map { |text| normal(JSON.parse(text)) }
        walk(before, after, [], nil)
      rescue JSON::ParserError => error
        "the answer is not JSON: #{error.message.lines.first.to_s.scrub.strip[0, 100]}"
      end

      private

      def normal(document)
        @patterns.each { |pattern| remove(document, pattern) }
        included = document.is_a?(Hash) && document["included"]
        document["included"] = included.sort_by { |resource| [resource["type"].to_s, resource["id"].to_s] } if included.is_a?(Array)
        document
      end

      def remove(node, pattern)
        segment, *rest = pattern
        return node.is_a?(Hash) && node.delete(segment) if rest.empty? && segment != "*"
        return node.clear if rest.empty? && node.respond_to?(:clear)

        below(node, segment).each { |child| remove(child, rest) }
      end

      def below(node, segment)
        case node
        when Hash then segment == "*" ? node.values : [node[segment]].compact
        when Array then segment == "*" ? node : []
        else []
        end
      end

      def walk(before, after, path, record)
        return if before == after

        record = label(before) || label(after) || record
        if before.is_a?(Hash) && after.is_a?(Hash) then members(before, after, path, record)
        elsif before.is_a?(Array) && after.is_a?(Array) && before.size == after.size then entries(before, after, path, record)
        else "#{place(record, path)}: #{shown(before, after)}"
        end
      end

      def place(record, path)
        parts = [record, path.join(".")].reject { |part| part.to_s.empty? }
        parts.empty? ? "the document" : parts.join(", ")
      end

      def members(before, after, path, record)
        (before.keys | after.keys).each do |key|
          difference = walk(before[key], after[key], inside(path, before, key), record)
          return difference if difference
        end
        nil
      end

      def entries(before, after, path, record)
        before.each_index do |index|
          difference = walk(before[index], after[index], [*path, index], record)
          return difference if difference
        end
        nil
      end

      # Inside a record, the path starts again: "users 7, relationships.roles".
      def inside(path, node, key)
        label(node) ? [key] : [*path, key]
      end

      def label(node)
        return unless node.is_a?(Hash) && node.key?("id")
        return "#{node["type"]} #{node["id"]}" if node.key?("type")

        "id #{node["id"]}"
      end

      def shown(before, after)
        if before.is_a?(Array) && after.is_a?(Array)
          "#{entries_of(before)} before, #{entries_of(after)} after#{first_stranger(before, after)}"
        else
          "#{value(before)} before, #{value(after)} after"
        end
      end

      def entries_of(array)
        array.size == 1 ? "1 entry" : "#{array.size} entries"
      end

      def first_stranger(before, after)
        labels = [before, after].map { |entries| entries.filter_map { |entry| label(entry) } }
        missing = (labels[0] - labels[1]).first and return " (#{missing} is missing)"
        added = (labels[1] - labels[0]).first and " (#{added} is new)"
      end

      def value(node)
        node.nil? ? "nothing" : JSON.generate(node)[0, SHOWN]
      end
    end
  end
end
