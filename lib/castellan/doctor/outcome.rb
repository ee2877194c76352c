# frozen_string_literal: true

require "json"

module Castellan
  module Doctor
    # Holds a result in a comparable form: the bytes of a response, or plain values. Frozen.
    #
    #   one = Outcome.of([200, {}, ['{"data":[],"at":1}']])
    #   other = Outcome.of([200, {}, ['{"data":[],"at":2}']])
    #   one.differences(other)                    # => ["$.at"]
    #   one.differences(other, masked: ["$.at"])  # => []
    #
    # A difference in JSON is reported as a path with `[*]` for each index, except for the index in an array
    # inside of an array (a row of a table): `[*][2]`. In other text it is a line. JSON documents with
    # different bytes are equal if all values outside of the masked paths are equal, in the same order.
    class Outcome
      WHOLE = "$"
      # The lines of a text that is not JSON.
      Lines = Struct.new(:lines)
      PLAIN = [NilClass, TrueClass, FalseClass, Numeric, String].freeze
      private_constant :Lines, :PLAIN

      class << self
        # @param result [String, Array, Answer, Object] a body, a response, or plain values and models
        # @return [Outcome]
        # @raise [Error] if the result cannot be compared
        def of(result)
          result = Answer.to(->(_env) { result }, {}) if rack?(result)
          case result
          when Answer then result.error ? raise(result.error) : new(result.status, result.body)
          when String then new(nil, result)
          else response?(result) ? new(result.status, result.body.to_s) : new(nil, nil, plain(result))
          end
        end

        # Converts models to their attributes and collections to arrays.
        #
        #   Outcome.plain([user, nil, { at: 1 }])   # => [{ "User" => { "id" => 1, … } }, nil, { "at" => 1 }]
        #
        # @return [Object]
        # @raise [Error] if the value cannot be compared
        def plain(value)
          case value
          when *PLAIN then value
          when Symbol then value.to_s
          when Time, Range, Module then value.inspect
          when Hash then value.to_h { |key, member| [plain(key).to_s, plain(member)] }
          else members(value)
          end
        end

        private

        # A response object of a test. Models do not count, because they may have columns with these names.
        def response?(result) = result.respond_to?(:status) && result.respond_to?(:body) && Detect.models(result.class).nil?

        def rack?(result)
          status, headers, body = result if result.is_a?(Array) && result.size == 3
          status.is_a?(Integer) && headers.respond_to?(:to_h) && !headers.is_a?(Array) &&
            (body.respond_to?(:each) || body.respond_to?(:call))
        end

        def members(value)
          models = Detect.models(value.class)
          return { value.class.name.to_s => plain(models == Detect::SequelModels ? value.values : value.attributes) } if models
          return value.to_a.map { |member| plain(member) } if value.is_a?(Enumerable) && !value.is_a?(Struct)
          return value.to_ary.map { |member| plain(member) } if value.respond_to?(:to_ary)
          return plain(value.to_h) if value.respond_to?(:to_h)
          return value.iso8601 if value.respond_to?(:iso8601)

          raise Error, "the block returned a #{value.class}, which cannot be compared: let it return the response, " \
                       "its body, or plain values"
        end
      end

      # @return [Integer, nil]
      # @return [String, nil]
      attr_reader :status, :bytes

      def initialize(status, bytes, plain = nil)
        @status = status
        @bytes = bytes&.b.freeze
        @plain = plain
        freeze
      end

      # @param other [Outcome]
      # @param masked [Array<String>] paths to ignore
      # @return [Array<String>] paths that differ
      def differences(other, masked: [])
        return ["status (#{status}, then #{other.status})"] if status != other.status
        return [] if bytes && bytes == other.bytes

        places = compare(document, other.document, WHOLE).uniq
        places = [WHOLE] if places.empty? && bytes && masked.empty? # the same values, serialized differently
        places.reject { |place| masked.any? { |mask| place == mask || place.start_with?("#{mask}.", "#{mask}[") } }
      end

      # @return [Boolean] whether both have the same values, in any order
      def reordered?(other) = status == other.status && sorted(document) == sorted(other.document)

      # @return [Object] the parsed body, its lines, or plain values
      def document
        return @plain unless bytes

        JSON.parse(bytes.dup.force_encoding(Encoding::UTF_8))
      rescue JSON::ParserError
        Lines.new(bytes.lines)
      end

      private

      def sorted(value)
        case value
        when Array then value.map { |member| sorted(member) }.sort_by(&:inspect)
        when Hash then value.transform_values { |member| sorted(member) }.sort_by(&:inspect)
        when Lines then value.lines.map(&:chomp).sort
        else value
        end
      end

      # @param row [Boolean] whether the values are elements of an array, so that an array is a row
      def compare(one, other, place, row: false)
        return [] if one.eql?(other)

        case [one, other]
        in Hash, Hash if one.keys == other.keys
          one.flat_map { |key, value| compare(value, other[key], "#{place}#{key.match?(/\A\w+\z/) ? ".#{key}" : "[#{key.inspect}]"}") }
        in Array, Array if one.size == other.size
          one.zip(other).flat_map.with_index { |pair, index| compare(*pair, "#{place}[#{row ? index : "*"}]", row: true) }
        in Lines, Lines if one.lines.size == other.lines.size && one.lines.size > 1 # in a text of one line, WHOLE is the only path
          one.lines.zip(other.lines).each.with_index(1).filter_map { |(line, same), number| "line #{number}" if line != same }
        else [place]
        end
      end
    end
  end
end
