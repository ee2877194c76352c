# frozen_string_literal: true

require "bigdecimal"
require "date"
require "delegate"
require "json"
require "time"
require_relative "../config"

module Castellan
  module Rows
    # Encodes Ruby values as JSON, and finds a coder for values that need no encoding here.
    #
    #   JSONValue.text(BigDecimal("12.50"))             # => "\"12.5\""
    #   JSONValue.text(Time.utc(2024, 1, 31, 10))       # => "\"2024-01-31T10:00:00.000Z\""
    #   JSONValue.coder([1, nil, 2])                    # => :integer
    #   JSONValue.coder([1, "two"])                     # => nil
    module JSONValue
      FRACTION = 3
      ADVICE = "correct the row, or let the block return what is to be written"
      # No coder for times, because their format depends on the application.
      CODERS = { String => :text, Symbol => :text, Integer => :integer, TrueClass => :boolean, FalseClass => :boolean, Float => :float,
                 Date => :date }.freeze
      # Encodes values that JSON and ActiveSupport write alike, in a fraction of ActiveSupport's time.
      PLAIN = (JSON::Coder.new { throw(:special) } if defined?(JSON::Coder))
      private_constant :FRACTION, :ADVICE, :CODERS, :PLAIN

      module_function

      def text(value)
        return ::ActiveSupport::JSON.encode(in_utc(value)) if Castellan.active_support_json?

        JSON.generate(plain(value))
      end

      # @param member [String] the member's name in the document
      # @yieldreturn [Object] the id of the row, for the error message
      # @raise [EncodingError] if a value cannot be written as JSON
      def texts(values, adapter, node, member)
        row = -1
        values.map { |value| (row += 1) && (plain_text(value) || adapter.json(value)) }
      rescue ::JSON::GeneratorError, ::JSON::NestingError, ::EncodingError => error
        raise EncodingError, "#{node.definition.type} #{yield(row).to_s.inspect}, member #{member.inspect}: " \
                             "#{error.message.scrub[0, 120]}; #{ADVICE}"
      end

      # @return [Symbol, nil] nil if the values are of several classes, so that each must be encoded as JSON
      def coder(values)
        kinds = values.uniq(&:class)
        kinds = kinds.map(&:class) - [NilClass]
        coders = kinds.map { |kind| CODERS[kind] }.uniq
        return :text if coders.empty?

        coders.first if coders.size == 1 && (coders.first != :date || iso_dates?)
      end

      # Rails may be configured to write dates as 2024/01/31.
      def iso_dates?
        !Castellan.active_support_json? || ::ActiveSupport::JSON::Encoding.use_standard_json_time_format
      end

      # @return [String, nil] JSON, which the encoder escapes; nil if only ActiveSupport can encode the value
      def plain_text(value)
        case value
        when Integer, true, false then value.to_s
        when nil then "null"
        else catch(:special) { PLAIN.generate(value) } if PLAIN
        end
      end

      def in_utc(value)
        case value
        when Hash then value.transform_values { |inner| in_utc(inner) }
        when Array then value.map { |inner| in_utc(inner) }
        else
          sequel = of_sequel(value)
          return in_utc(sequel) unless sequel.equal?(value)

          value.instance_of?(Time) && value.zone == "UTC" ? value.getutc : value
        end
      end

      def plain(value)
        case value
        when BigDecimal then value.finite? ? value.to_s("F") : nil
        when DateTime then plain(value.to_time)
        when Time then of_clock(value) || (value.zone == "UTC" ? value.getutc : value).xmlschema(FRACTION)
        when Date then value.iso8601
        when Hash then value.to_h { |key, inner| [key.to_s, plain(inner)] }
        when Array then value.map { |inner| plain(inner) }
        else
          sequel = of_sequel(value)
          sequel.equal?(value) ? value : plain(sequel)
        end
      end

      # Arrays of Sequel's pg_array and rows of its pg_row are Delegators. A range of pg_range is written as PostgreSQL
      # writes it, because Sequel writes its inspection, and ActiveSupport each of its values, without end if it has none.
      # An interval of pg_interval is a duration, whose seconds ActiveSupport::JSON writes.
      # @return [Object] the value itself, or what to write instead of it
      def of_sequel(value)
        return of_clock(value) || value if value.is_a?(Time)
        return value.as_json if defined?(::ActiveSupport::Duration) && value.is_a?(::ActiveSupport::Duration)
        return value unless defined?(::Sequel::Postgres)
        return value.to_ary if value.is_a?(Delegator) && value.respond_to?(:to_ary)
        return value.to_hash if value.is_a?(Delegator) && value.respond_to?(:to_hash)

        defined?(::Sequel::Postgres::PGRange) && value.is_a?(::Sequel::Postgres::PGRange) ? range(value) : value
      end

      # The time of a column of the type `time`, to which Sequel adds the date of today.
      # @return [String, nil] nil for other times
      def of_clock(value)
        value.strftime(value.nsec.zero? ? "%T" : "%T.%6N") if defined?(::Sequel::SQLTime) && value.is_a?(::Sequel::SQLTime)
      end

      def range(value)
        return "empty" if value.empty?

        first, last = [value.begin, value.end].map { |bound| plain(bound) }
        "#{value.exclude_begin? ? "(" : "["}#{first},#{last}#{value.exclude_end? ? ")" : "]"}"
      end
      private_class_method :in_utc, :of_sequel, :of_clock, :range
    end
  end
end
