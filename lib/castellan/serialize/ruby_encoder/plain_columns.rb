# frozen_string_literal: true

module Castellan
  module Serialize
    class RubyEncoder
      # The columns of a node's rows as JSON. Where a driver's texts are JSON but for the quotes, they are taken as they are: a whole column
      # is looked at in one go.
      #
      #   columns = PlainColumns.new(table, section, text)
      #   columns.member(email, 1)   # => Column of ["ada@example.com", …] between '"' and '"'
      class PlainColumns
        # One text a row; `open` and `close` stand around each.
        Column = Struct.new(:texts, :open, :close)
        INTEGERS = [20, 21, 23].freeze # the types int8, int2 and int4 in pg_type
        BOOLEANS = { true => "true", "t" => "true", 1 => "true", false => "false", "f" => "false", 0 => "false", nil => "null" }.freeze
        private_constant :INTEGERS, :BOOLEANS

        # @return [Text]
        # @return [Integer]
        attr_reader :text, :size

        def initialize(table, section, text)
          @table = table
          @section = section
          @text = text
          @size = section.size
        end

        # @return [Column]
        # @raise [Unwritable] where a row has no id
        def ids
          @ids ||= begin
            texts = id_texts
            raise Unwritable.new(:id, "") unless texts.all? && (id_numbers || !texts.include?(""))

            id_numbers || bare?(texts) ? Column.new(texts, '"', '"') : Column.new(texts.map { |id| text.quoted(id) }, "", "")
          end
        end

        # @return [Column] as the nested format has them: numbers are numbers there
        # @raise [Unwritable]
        def nested_ids
          @section.coder(0) == :integer ? column(0, :integer) : ids
        end

        # @return [Array<String>]
        def id_texts
          @id_texts ||= integers?(@table.rows, 0) ? values(0) : values(0).map { |id| Values.id(id) }
        end

        # @return [Array<Integer>, nil] the ids as numbers, where they are such
        def id_numbers
          return @id_numbers if defined?(@id_numbers)

          @id_numbers = PlainColumns.numbers(@table.rows, [0])&.first
        end

        # @param id [Object] a linked one, as the driver gave it
        # @return [Integer, nil] the first row that has it
        def number_of(id)
          return @section.number_of(Values.id(id)) unless id.is_a?(Integer) && id_numbers

          @numbers ||= id_numbers.each_with_index.reverse_each.to_h
          @numbers[id]
        end

        # @param member [Template::MemberParts]
        # @return [Column]
        # @raise [Unwritable]
        def member(member, position)
          computed = @section.computed(position)
          return written(computed.map { |json| json(json) }) if computed

          coder = member.column && @section.coder(member.column)
          coder or raise Unwritable.new(:text, nil) # who writes row by row says what is missing
          column(member.column, coder)
        end

        # @param rows [Array<Array>, PG::Result]
        # @param positions [Array<Integer>]
        # @return [Array<Array<Integer, nil>>, nil] nil where a column has something else
        def self.numbers(rows, positions)
          return decoded(rows, positions) unless rows.is_a?(Array)

          columns = positions.map { |position| NodeRows.column(rows, position) }
          columns if columns.all? { |column| column.all?(Integer) }
        end

        # By the driver, so that no string is made of a number.
        def self.decoded(rows, positions)
          return unless positions.all? { |position| INTEGERS.include?(rows.ftype(position)) }

          texts = rows.type_map
          rows.type_map = ::PG::TypeMapByColumn.new(Array.new(rows.nfields) { |index| number if positions.include?(index) })
          positions.map { |position| rows.column_values(position) }
        ensure
          rows.type_map = texts if texts
        end

        def self.number
          @number ||= ::PG::TextDecoder::Integer.new
        end
        private_class_method :decoded, :number

        # @return [Array<Object>] the driver's, one a row
        def values(position)
          @section.column(position)
        end

        private

        def column(position, coder)
          values = values(position)
          case coder
          when :text then texts(values)
          when :datetime then Column.new(Times.texts(values), "", "")
          when :integer then integers(values, position)
          when :boolean then written(values.map { |value| BOOLEANS[value] || WrittenColumn.one(value, coder, text) })
          else written(WrittenColumn.call(values, coder, text))
          end
        end

        # Only text stands in a PostgreSQL column of text, and what is null.
        def texts(values)
          strings = values.compact
          return written(WrittenColumn.call(values, :text, text)) unless strings?(strings) && bare?(strings)
          return Column.new(values, '"', '"') if strings.size == values.size

          Column.new(values.map { |value| value ? "\"#{value}\"" : "null" }, "", "")
        end

        def integers(values, position)
          return Column.new(values.all? ? values : values.map { |value| value || "null" }, "", "") if integers?(@table.rows, position)
          return written(WrittenColumn.call(values, :integer, text)) unless values.all? { |value| value.nil? || value.is_a?(Integer) }

          Column.new(values.map { |value| value ? value.to_s : "null" }, "", "")
        end

        def integers?(rows, position)
          !rows.is_a?(Array) && INTEGERS.include?(rows.ftype(position))
        end

        def strings?(values)
          !@table.rows.is_a?(Array) || values.all?(String)
        end

        def bare?(strings)
          return true if strings.empty?

          all = strings.join
          return text.bare?(all) if all.ascii_only?

          all = strings.join(" ") # so that the bytes of two texts cannot make up a character
          all.encoding == Encoding::UTF_8 && text.bare?(all)
        rescue ::EncodingError
          false
        end

        def written(texts)
          raise Unwritable.new(:text, nil) unless texts.all?

          Column.new(texts, "", "")
        end

        def json(json)
          text.append_json(+"", json)
        end
      end
    end
  end
end
