# frozen_string_literal: true

module Castellan
  module Serialize
    # Reads one node's rows for the Ruby encoder: values, linked ids, and rows by id.
    #
    #   rows.id(0)               # => "1"
    #   rows.linked(0, edge)     # => ["3", "4"]   the ids that row 0 links to
    #   rows.row_of("1")         # => 0
    #
    # Ids are compared as text. An instance serves one encoding.
    class NodeRows
      # @return [Template::NodeParts]
      # @return [Integer] the number of rows
      attr_reader :parts, :size

      # Error messages for authors of a rows adapter.
      def self.unknown_coder(type, coder)
        "#{type}: #{coder.inspect} is no coder (they are #{Values::CODERS.join(", ")})"
      end

      def self.no_coder(type, key)
        "#{type}: nothing says how to write #{key.inspect} (no coder, not computed)"
      end

      def initialize(table, parts)
        @table = table
        @parts = parts
        @size = table.rows.is_a?(Array) ? table.rows.size : table.rows.ntuples
        @columns = {}
        @links = table.links || []
        @grouped = {}
        @texts = Hash.new { |texts, value| texts[value] = Values.id(value) } # the same ids recur in the links
        wrong = table.coders.find { |coder| coder && !Values::CODERS.include?(coder) }
        raise ArgumentError, NodeRows.unknown_coder(type, wrong) if wrong
      end

      # @return [String]
      def type
        parts.type
      end

      # @return [Symbol, nil] of the column at this position
      def coder(position)
        @table.coders[position]
      end

      # @return [Object] the driver's value
      def value(row, position)
        (@columns[position] ||= column(@table.rows, position))[row]
      end

      # @return [Array<String>, nil] one JSON text per row for the member at this position; nil if it is not
      #   computed
      def computed(position)
        @table.computed && @table.computed[position]
      end

      # @return [Plan::RowSet::Asides, nil]
      def asides
        @table.asides
      end

      # @return [String] "" for a NULL id
      # @raise [EncodingError]
      def id(row)
        @texts[value(row, 0)]
      rescue Unwritable => error
        raise Unwritable.locate(error, type: type, id: nil, member: "id")
      end

      # @return [Integer, nil] the first row with this id
      def row_of(id)
        @rows ||= (0...size).each_with_object({}) { |row, rows| rows[id(row)] ||= row }
        @rows[id]
      end

      # @return [Array<String>] the related ids, in output order
      # @raise [EncodingError]
      def linked(row, edge)
        targets(row, edge).map(&:last)
      end

      # @return [Array<Array(Integer, String)>] the position among the relationship's types, and the id, in
      #   output order
      # @raise [EncodingError]
      def targets(row, edge)
        link = @links[edge.position] or return []
        found = link.is_a?(Plan::RowSet::InColumn) ? in_column(value(row, link.position), edge) : grouped(link, edge).fetch(id(row), [])
        edge.to_many ? found : found.first(1)
      rescue Unwritable => error
        raise Unwritable.locate(error, type: type, id: id(row), member: edge.key)
      end

      private

      def column(rows, position)
        rows.is_a?(Array) ? rows.map { |row| row[position] } : rows.column_values(position)
      end

      def in_column(value, edge)
        ids = edge.to_many && value.is_a?(String) ? Values.id(value).split(",") : [Values.id(value)]
        ids.reject(&:empty?).map { |id| [0, id] }
      end

      def grouped(link, edge)
        @grouped[edge.position] ||= columns(link).transpose.each_with_object({}) do |(parent, related, kind), found|
          related = @texts[related]
          parent = @texts[parent]
          (found[parent] ||= []) << [kind || 0, related] unless related.empty? || parent.empty?
        end
      end

      # @return [Array<Array>] the parents' ids, the related ids and the positions of their types
      def columns(link)
        return link.columns if link.is_a?(Plan::RowSet::Lists)

        [link.parent_position, link.related_position, link.kind_position].compact.map { |position| column(link.rows, position) }
      end
    end
  end
end
