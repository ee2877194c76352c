# frozen_string_literal: true

module Castellan
  module Serialize
    # Encodes a driver's value as JSON, by the coder of its column (see {Plan::RowSet}).
    #
    #   Values.append(buffer, :datetime, "2024-01-31 10:00:00", Text.for(:json))
    #
    # A value that does not fit its coder raises {Unwritable}. NULL is null.
    module Values
      INTEGER = /\A-?(0|[1-9]\d*)\z/
      FLOAT = /\A\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\z/
      CODERS = %i[integer text boolean float decimal date datetime json].freeze
      private_constant :INTEGER, :FLOAT

      module_function

      # @param buffer [String] UTF-8, to which the JSON is appended
      # @param coder [Symbol]
      # @param value [Object] the driver's value
      # @param text [Text] the escaping of strings
      # @raise [Unwritable]
      def append(buffer, coder, value, text)
        return buffer << "null" if value.nil?

        case coder
        when :text then text.append(buffer, string(value))
        when :integer then buffer << integer(value)
        when :boolean then buffer << boolean(value)
        when :float then buffer << float(value)
        when :decimal then buffer << '"' << Decimal.text(value) << '"'
        when :date then buffer << '"' << Timestamp.date(value) << '"'
        when :datetime then buffer << '"' << Timestamp.datetime(value) << '"'
        when :json then text.append_json(buffer, json(value))
        end
      end

      # @return [String] the id as a string; "" for NULL
      def id(value)
        case value
        when String then Text.utf8(value)
        when nil then ""
        when Integer, Symbol then value.to_s
        else raise Unwritable.new(:id, value)
        end
      end

      # @return [String] an error message for authors of adapters
      def unknown_coder(type, coder)
        "#{type}: #{coder.inspect} is no coder (they are #{CODERS.join(", ")})"
      end

      # @return [String] an error message for authors of adapters
      def no_coder(type, key)
        "#{type}: #{key.inspect} has neither a coder nor a computed value"
      end

      def string(value)
        case value
        when String then value
        when Symbol, Integer, Float then value.to_s
        else raise Unwritable.new(:text, value)
        end
      end

      def integer(value)
        return value.to_s if value.is_a?(Integer)

        value.is_a?(String) && value.match?(INTEGER) ? value : raise(Unwritable.new(:integer, value))
      end

      def boolean(value)
        case value
        when true, 1, "t", "1", "true" then "true"
        when false, 0, "f", "0", "false" then "false"
        else raise Unwritable.new(:boolean, value)
        end
      end

      # Uses the installed json gem, because its versions format exponents differently.
      def float(value)
        number = float_of(value)
        raise Unwritable.new(:finite, value) unless number.finite?

        text = number.to_s
        text.include?("e") ? ::JSON.generate(number) : text
      end

      def float_of(value)
        case value
        when Float then value
        when Integer then value.to_f
        when /\A-?(nan|inf)/i then Float::NAN
        when FLOAT then value.to_f
        else raise Unwritable.new(:float, value)
        end
      end

      # SQLite stores a JSON document that is only a number as a number.
      def json(value)
        case value
        when Integer then value.to_s
        when Float then float(value)
        else value
        end
      end

      private_class_method :string, :integer, :boolean, :float, :float_of, :json
    end
  end
end
