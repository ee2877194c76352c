# frozen_string_literal: true

module Castellan
  module Serialize
    class RubyEncoder
      # A column of times as JSON: all of them are looked at in one go.
      #
      #   Times.texts(["2024-01-31 10:00:00", nil])   # => ['"2024-01-31T10:00:00.000Z"', "null"]
      #
      # What databases do not write so is read one by one (see {Timestamp}).
      module Times
        PLAIN = /\A(?>\d\d\d\d-(?:0[1-9]|1[0-2])-(?:[012][1-9]|[123]0|31) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d\d\d\d?\d?\d?)?\n)*+\z/
        DOUBTFUL = /-(?:02-29|02-3|04-31|06-31|09-31|11-31)/ # days that are not in each year
        WHOLE = "2024-01-31 10:00:00".bytesize
        MILLISECONDS = "2024-01-31 10:00:00.000".bytesize
        private_constant :PLAIN, :DOUBTFUL, :WHOLE, :MILLISECONDS

        module_function

        # @param values [Array<Object>] the driver's
        # @return [Array<String>]
        # @raise [Unwritable]
        def texts(values)
          return values.map { |value| value ? plain(value) : "null" } if plain?(values.compact)

          values.map { |value| value.nil? ? "null" : "\"#{Timestamp.datetime(value)}\"" }
        end

        def plain?(values)
          return false unless values.all?(String)

          all = "#{values.join("\n")}\n"
          return values.empty? unless all.ascii_only? && all.count("\n") == values.size # a text of two lines is not two texts

          all.match?(PLAIN) && !all.match?(DOUBTFUL)
        rescue ::EncodingError
          false
        end

        def plain(value)
          text = value.byteslice(0, MILLISECONDS)
          text.setbyte(10, 84) # T
          value.bytesize == WHOLE ? "\"#{text}.000Z\"" : "\"#{text}Z\""
        end
        private_class_method :plain?, :plain
      end
    end
  end
end
