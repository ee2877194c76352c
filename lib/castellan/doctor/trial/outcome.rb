# frozen_string_literal: true

require "json"

module Castellan
  module Doctor
    class Trial
      # Result of work in a comparable form: the bytes of a response, or plain values. Frozen.
      #
      #   one = Outcome.of([200, {}, ['{"data":[],"at":1}']])
      #   other = Outcome.of([200, {}, ['{"data":[],"at":2}']])
      #   one.differences(other)                    # => ["$.at"]
      #   one.differences(other, masked: ["$.at"])  # => []
      #
      # A place in JSON is a path with `[*]` for every index, except columns of a table (arrays of equal
      # length): `[*][2]`. In other text it is a line. Different JSON is equal if all values outside the
      # masked places are, in the same order.
      class Outcome
        WHOLE = "$"

        # @param result [String, Array, Answer, Object] a body, a Rack response, an object with a status and a
        #   body, or plain values and models
        # @return [Outcome]
        # @raise [Error] if it cannot be compared
        def self.of(result)
          return of_answer(result) if result.is_a?(Answer)
          return of_answer(Answer.to(->(_env) { result }, {})) if rack?(result)
          return new(result.status, result.body.to_s) if response?(result)

          result.is_a?(String) ? new(nil, result) : new(nil, nil, Plain.of(result))
        end

        # Response objects of tests. Models are excluded, because they may have columns of these names.
        def self.response?(result)
          result.respond_to?(:status) && result.respond_to?(:body) && Detect.models(result.class).nil?
        end
        private_class_method :response?

        def self.rack?(result)
          result.is_a?(Array) && result.size == 3 && result[0].is_a?(Integer) && result[1].respond_to?(:to_h) &&
            (result[2].respond_to?(:each) || result[2].respond_to?(:call)) && !result[1].is_a?(Array)
        end
        private_class_method :rack?

        def self.of_answer(answer)
          raise answer.error if answer.error

          new(answer.status, answer.body)
        end
        private_class_method :of_answer

        # @return [Integer, nil]
        # @return [String, nil]
        attr_reader :status, :bytes

        def initialize(status, bytes, plain = nil)
          @status = status
          @bytes = bytes&.b.freeze
          @plain = plain
          freeze
        end

        # @return [Boolean] whether there is nothing to compare
        def nothing? = @bytes.nil? && @plain.nil?

        # @param other [Outcome]
        # @param masked [Array<String>] places to ignore
        # @return [Array<String>] places that differ
        def differences(other, masked: [])
          return ["status (#{status}, then #{other.status})"] if status != other.status
          return [] if bytes && bytes == other.bytes

          places = compare(document, other.document, WHOLE).uniq
          places = [WHOLE] if places.empty? && bytes && masked.empty? # equal values, serialized differently
          places.reject { |place| masked.any? { |mask| within?(place, mask) } }
        end

        # @return [Boolean] whether both have the same values in any order
        def reordered?(other) = status == other.status && sorted(document) == sorted(other.document)

        # @return [Object] parsed body, its lines, or plain values
        def document
          return @plain unless bytes

          JSON.parse(bytes.dup.force_encoding(Encoding::UTF_8))
        rescue JSON::ParserError
          Lines.new(bytes.lines)
        end

        # Lines of a text that is not JSON, so that places are named as lines.
        Lines = Struct.new(:lines)
        private_constant :Lines

        private

        def sorted(value)
          case value
          when Array then value.map { |member| sorted(member) }.sort_by(&:inspect)
          when Hash then value.transform_values { |member| sorted(member) }.sort_by(&:inspect)
          when Lines then value.lines.map(&:chomp).sort
          else value
          end
        end

        def compare(one, other, place)
          return [] if one.eql?(other)
          return lines(one.lines, other.lines) if one.is_a?(Lines) && other.is_a?(Lines)

          members(one, other, place) || [place]
        end

        def members(one, other, place)
          if one.is_a?(Hash) && other.is_a?(Hash) && one.keys == other.keys
            one.flat_map { |key, value| compare(value, other[key], "#{place}#{member(key)}") }
          elsif one.is_a?(Array) && other.is_a?(Array) && one.size == other.size
            rows = table?(one) && table?(other)
            one.zip(other).flat_map { |value, same| rows ? row(value, same, "#{place}[*]") : compare(value, same, "#{place}[*]") }
          end
        end

        def table?(list) = list.size > 1 && list.all?(Array) && list.map(&:size).uniq.one?

        def row(one, other, place)
          return [place] if one.size != other.size

          one.zip(other).each_with_index.flat_map { |(value, same), column| compare(value, same, "#{place}[#{column}]") }
        end

        # A text of one line has only the place WHOLE.
        def lines(one, other)
          return [WHOLE] if one.size != other.size || one.size == 1

          one.zip(other).each.with_index(1).filter_map { |(line, same), number| "line #{number}" if line != same }
        end

        def member(key) = key.to_s.match?(/\A\w+\z/) ? ".#{key}" : "[#{key.to_s.inspect}]"

        def within?(place, mask) = place == mask || place.start_with?("#{mask}.", "#{mask}[")
      end
    end
  end
end
