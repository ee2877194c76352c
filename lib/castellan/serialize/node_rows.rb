# frozen_string_literal: true

module Castellan
  module Serialize
    # Reads one node's rows for the Ruby encoder: values, linked ids, and rows by id.
    #
    #   rows.id(0)               # => "1"
    #   rows.targets(0, edge)    # => [[0, "3"], [0, "4"]]   types and ids to which row 0 links
    #   rows.row_of("1")         # => 0
    #
    # Compares ids as strings. Used for one encoding.
    class NodeRows
      # @return [Template::NodeParts]
      # @return [Plan::RowSet::Asides, nil]
      # @return [Integer] the number of rows
      # @return [String] the resource's type
      attr_reader :parts, :asides, :size, :type

      def initialize(table, parts)
        @table = table
        @parts = parts
        @type = parts.type
        @asides = table.asides
        @rows = arrays(table.rows)
        @size = @rows.size
        @ids = []
        @grouped = {}
        wrong = table.coders.find { |coder| coder && !Values::CODERS.include?(coder) }
        raise ArgumentError, Values.unknown_coder(type, wrong) if wrong
      end

      # @return [Symbol, nil] the coder of the column at this position
      def coder(position) = @table.coders[position]

      # @return [Object] the driver's value
      def value(row, position) = @rows[row][position]

      # @return [Array<String>, nil] one JSON string per row for the member at this
      #   position; nil if it is not computed
      def computed(position) = @table.computed&.fetch(position, nil)

      # @return [String] "" for a NULL id
      # @raise [EncodingError]
      def id(row)
        @ids[row] ||= Values.id(value(row, 0))
      rescue Unwritable => error
        raise Unwritable.locate(error, type: type, id: nil, member: "id")
      end

      # @return [Integer, nil] the first row with this id
      def row_of(id)
        @rows_by_id ||= (0...size).each_with_object({}) { |row, rows| rows[id(row)] ||= row }
        @rows_by_id[id]
      end

      # @return [Array<Array(Integer, String)>] position among the
      #   relationship's types, and id, in output order
      # @raise [EncodingError]
      def targets(row, edge)
        link = @table.links&.at(edge.position) or return []
        found = link.is_a?(Plan::RowSet::InColumn) ? in_column(value(row, link.position), edge) : grouped(link, edge).fetch(id(row), [])
        edge.to_many ? found : found.first(1)
      rescue Unwritable => error
        raise Unwritable.locate(error, type: type, id: id(row), member: edge.key)
      end

      private

      def arrays(rows)
        rows.is_a?(Array) ? rows : rows.values
      end

      def in_column(value, edge)
        ids = edge.to_many && value.is_a?(String) ? Values.id(value).split(",") : [Values.id(value)]
        ids.reject(&:empty?).map { |id| [0, id] }
      end

      def grouped(link, edge)
        @grouped[edge.position] ||= begin
          link = link.pairs if link.is_a?(Plan::RowSet::Lists)
          arrays(link.rows).each_with_object({}) do |row, found|
            parent = Values.id(row[link.parent_position])
            related = Values.id(row[link.related_position])
            kind = link.kind_position ? row[link.kind_position] : 0
            (found[parent] ||= []) << [kind, related] unless related.empty? || parent.empty?
          end
        end
      end
    end
  end
end
