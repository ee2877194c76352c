# frozen_string_literal: true

module Castellan
  module Serialize
    # Reads one node's rows for the Ruby encoder: values, linked ids, and rows by id.
    #
    #   rows.id(0)               # => "1"
    #   rows.linked(0, 1)        # => ["3", "4"]   the ids that row 0 links to through the second edge
    #   rows.number_of("1")      # => 0
    #
    # Ids are compared as text. An instance serves one encoding.
    class NodeRows
      # @!attribute parts
      #   @return [Template::NodeParts]
      # @!attribute size
      #   @return [Integer] the number of rows
      attr_reader :parts, :size

      # @param rows [Array<Array>, PG::Result]
      # @return [Array<Object>] one value per row
      def self.column(rows, position)
        rows.is_a?(Array) ? rows.map { |row| row[position] } : rows.column_values(position)
      end

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
        @columns = []
        @size = table.rows.is_a?(Array) ? table.rows.size : table.rows.ntuples
        @links = table.links || []
        @grouped = {}
        @texts = Hash.new { |texts, value| texts[value] = Values.id(value) } # the same ids recur in the links
        check_coders
      end

      def coder(position)
        @table.coders[position]
      end

      def value(number, position)
        column(position)[number]
      end

      # @return [Array<Object>] one value per row
      def column(position)
        @columns[position] ||= NodeRows.column(@table.rows, position)
      end

      # @return [Array<String>, nil] one JSON text per row for the member at this position; nil if it is not
      #   computed
      def computed(position)
        @table.computed && @table.computed[position]
      end

      # @return [String] "" for a NULL id
      # @raise [EncodingError]
      def id(number)
        @texts[value(number, 0)]
      rescue Unwritable => error
        raise Unwritable.locate(error, type: parts.type, id: nil, member: "id")
      end

      # @return [Integer, nil] the first row with this id
      def number_of(id)
        numbers[id]
      end

      # @return [Array<String>] the related ids, in output order
      # @raise [EncodingError]
      def linked(number, edge)
        link = @links[edge.position]
        case link
        when nil then []
        when Plan::RowSet::InColumn then in_column(value(number, link.position), edge.to_many)
        else grouped(edge).fetch(id(number), [])
        end
      rescue Unwritable => error
        raise Unwritable.locate(error, type: parts.type, id: id(number), member: edge.key)
      end

      # @return [Array<Array(Integer, String)>] the index among the relationship's types, and the id, in
      #   output order
      # @raise [EncodingError]
      def targets(number, edge)
        link = @links[edge.position]
        return linked(number, edge).map { |id| [0, id] } unless link.is_a?(Plan::RowSet::Pairs) && link.kind_position

        @kinds ||= {}
        kinds = @kinds[edge.position] ||= link.rows.group_by { |row| Values.id(row[link.parent_position]) }.except("")
        found = kinds.fetch(id(number), []).filter_map { |row| target(row, link) }
        edge.to_many ? found : found.first(1)
      rescue Unwritable => error
        raise Unwritable.locate(error, type: parts.type, id: id(number), member: edge.key)
      end

      # @return [Plan::RowSet::Asides, nil]
      def asides
        @table.asides
      end

      private

      def target(row, link)
        id = @texts[row[link.related_position]]
        [row[link.kind_position], id] unless id.empty?
      end

      def check_coders
        wrong = @table.coders.find { |coder| coder && !Values::CODERS.include?(coder) }
        raise ArgumentError, NodeRows.unknown_coder(parts.type, wrong) if wrong
      end

      def numbers
        @numbers ||= (0...size).each_with_object({}) { |number, map| map[id(number)] ||= number }
      end

      def in_column(value, to_many)
        ids = to_many && value.is_a?(String) ? Values.id(value).split(",") : [Values.id(value)]
        ids.delete("")
        ids
      end

      def grouped(edge)
        @grouped[edge.position] ||= group(@links[edge.position], edge)
      end

      def columns(link)
        return link.columns if link.is_a?(Plan::RowSet::Lists)

        [link.parent_position, link.related_position].map { |position| NodeRows.column(link.rows, position) }
      end

      def group(link, edge)
        parents, all = columns(link)
        map = {}
        all.each_with_index do |related, index|
          related = @texts[related]
          parent = @texts[parents[index]]
          next if related.empty? || parent.empty?

          ids = (map[parent] ||= [])
          ids << related if edge.to_many || ids.empty?
        end
        map
      end
    end
  end
end
