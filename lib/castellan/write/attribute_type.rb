# frozen_string_literal: true

require "date"
require "time"

module Castellan
  module Write
    # Checks whether a JSON value fits the type of a column. An ORM would cast "abc" to 0 and store it.
    #
    #   AttributeType.problem(:integer, 7)       # => nil
    #   AttributeType.problem(:integer, "abc")   # => "must be a whole number, got \"abc\""
    #
    # An unlisted type (of an extension, or of the application) accepts any value without NUL.
    module AttributeType
      DECIMAL = /\A[+-]?\d{1,1000}(?:\.\d{1,1000})?(?:[eE][+-]?\d{1,2})?\z/
      DATE = /\d{4}-\d\d-\d\d/
      CLOCK = /(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?/
      TIME_OF_DAY = /\A#{CLOCK}\z/
      WHOLE_DATE = /\A#{DATE}\z/
      WHOLE_TIME = /\A#{DATE}(?:[T ]#{CLOCK})?\z/
      UUID = /\A\h{8}-?\h{4}-?\h{4}-?\h{4}-?\h{12}\z/
      JSON_TYPES = %i[json jsonb].freeze
      private_constant :JSON_TYPES, :DECIMAL, :DATE, :CLOCK, :TIME_OF_DAY, :WHOLE_DATE, :WHOLE_TIME, :UUID

      CHECKS = {
        integer: ["a whole number of at most 64 bits", ->(value) {
          value.is_a?(Numeric) && value.to_i == value && value.to_i.bit_length < 64
        }],
        float: ["a number", ->(value) { value.is_a?(Numeric) }],
        decimal: ["a number, or a string of one", ->(value) { value.is_a?(Numeric) || (value.is_a?(String) && DECIMAL.match?(value)) }],
        boolean: ["true or false", ->(value) { [true, false].include?(value) }],
        string: ["a string", ->(value) { value.is_a?(String) }],
        text: ["a string", ->(value) { value.is_a?(String) }],
        citext: ["a string", ->(value) { value.is_a?(String) }],
        binary: ["a string of ASCII characters", ->(value) { value.is_a?(String) && value.ascii_only? }],
        blob: ["a string of ASCII characters", ->(value) { value.is_a?(String) && value.ascii_only? }],
        hstore: ["an object of strings, numbers, booleans and null", ->(value) {
          value.is_a?(Hash) && value.each_value.none? { |one| one.is_a?(Hash) || one.is_a?(Array) }
        }],
        uuid: ["a string with a UUID", ->(value) { value.is_a?(String) && UUID.match?(value) }],
        date: ["a string with a date, such as \"2026-01-31\"", ->(value) { day?(value, WHOLE_DATE) }],
        datetime: ["a string with a time, such as \"2026-01-31T12:00:00Z\"", ->(value) { day?(value, WHOLE_TIME) }],
        timestamp: ["a string with a time, such as \"2026-01-31T12:00:00Z\"", ->(value) { day?(value, WHOLE_TIME) }],
        timestamptz: ["a string with a time, such as \"2026-01-31T12:00:00Z\"", ->(value) { day?(value, WHOLE_TIME) }],
        time: ["a string with a time, such as \"12:00:00\"",
               ->(value) { (value.is_a?(String) && TIME_OF_DAY.match?(value)) || day?(value, WHOLE_TIME) }]
      }.freeze
      # ActiveRecord would read "x" as 0 and "[x,y]" as an infinite range. Only the database can check the rest.
      INSTANT = /#{DATE}(?:[T ][\d:.+-]+(?:Z| ?UTC)?)?/
      BOUNDS = { int4range: /[+-]?\d+/, int8range: /[+-]?\d+/, numrange: /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?/, daterange: DATE,
                 tsrange: INSTANT, tstzrange: INSTANT }.freeze
      # As PostgreSQL writes it: $1,234.50, ($1.00) and, by its locale, 1.234,50
      MONEY = /\A\(?-?\p{Sc}?(?:[\d,]*\d\.\d\d|[\d.]*\d,\d\d)\)?\z/
      PARTLY = BOUNDS.to_h { |type, bound|
        one = /\s*"?(?:#{bound}|-?infinity)?"?\s*/
        text = /\A(?:[\[(]#{one},#{one}[\])]|empty)\z/
        [type, ["a string with a range, such as \"[lower,upper)\"", ->(value) { value.is_a?(String) && text.match?(value) }]]
      }.merge(money: ["a number, or a string of one", ->(value) {
        CHECKS[:decimal].last.call(value) || (value.is_a?(String) && MONEY.match?(value))
      }]).freeze
      private_constant :CHECKS, :INSTANT, :BOUNDS, :MONEY, :PARTLY

      module_function

      # @param type [Symbol, nil] the ORM's name of the type
      # @return [Boolean] whether this module can check the values; only the database can check those of other
      #   types
      def known?(type)
        CHECKS.key?(type) || JSON_TYPES.include?(type)
      end

      # @param type [Symbol, nil] the ORM's name of the type
      # @param value [Object] parsed from JSON
      # @param array [Boolean] whether the column is an array of the type
      # @param allowed [Array<String>, nil] the values of an enum
      # @return [String, nil] the problem, to append to the name of the member; nil if the value fits
      def problem(type, value, array: false, allowed: nil)
        return if value.nil?
        return unwritable(value) || problem_of_array(type, value) if array

        unwritable(value) || (allowed ? problem_of_enum(value, allowed) : problem_of_type(type, value))
      end

      def problem_of_array(type, value)
        return "must be an array, got #{Write.kind_of(value)}" unless value.is_a?(Array)

        value.filter_map { |one| problem(type, one) }.first&.then { |text| "has a value that #{text}" }
      end

      def problem_of_enum(value, allowed)
        "must be one of #{allowed.first(20).join(", ")}" unless allowed.include?(value)
      end

      def problem_of_type(type, value)
        wanted, check = CHECKS[type] || PARTLY[type]
        return if check.nil? || check.call(value)

        "must be #{wanted}, got #{value.is_a?(String) ? ClientText.shown(value, 40).inspect : Write.kind_of(value)}"
      end

      # Databases store neither NUL in text nor infinity in JSON. Casts make infinity of an integer beyond all floats.
      def unwritable(value)
        case value
        when String then "must not contain the character NUL" if value.include?("\0")
        when Float then "is too large" unless value.finite?
        when Integer then "is too large" if value.bit_length > Float::MAX_EXP
        when Array then value.filter_map { |one| unwritable(one) }.first
        when Hash then value.filter_map { |name, one| unwritable(name) || unwritable(one) }.first
        end
      end

      # Only the formats that both ORMs read. Date.iso8601 accepts more, but the ORMs would write NULL for
      # them.
      def day?(value, shape)
        value.is_a?(String) && shape.match?(value) && Date.valid_date?(*value[0, 10].split("-").map { |part| Integer(part, 10) })
      end
      private_class_method :problem_of_array, :problem_of_enum, :problem_of_type, :unwritable, :day?
    end
  end
end
