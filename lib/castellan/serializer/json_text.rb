# frozen_string_literal: true

require "json"

module Castellan
  module Serializer
    # The JSON of a document that is a hash, as ActiveSupport would write it where that is loaded, and as the json gem otherwise.
    #
    #   JsonText.of({ data: { id: "1", type: :user } })   # => '{"data":{"id":"1","type":"user"}}'
    #
    # Text, whole numbers, true, false and nil are written here, without the copies that `as_json` makes of every hash; whatever
    # else there is (times, decimals) is written by ActiveSupport's `as_json`.
    class JsonText
      # @param value [Object]
      # @return [String] UTF-8
      # @raise [EncodingError]
      def self.of(value)
        new.append(value).text
      end

      attr_reader :text

      def initialize
        @text = String.new(encoding: Encoding::UTF_8)
        @strings = Serialize::Text.for(Serialize.escape)
        @keys = {}
      end

      # @return [self]
      def append(value)
        case value
        when nil then @text << "null"
        when true then @text << "true"
        when false then @text << "false"
        when Integer then @text << value.to_s
        else append_other(value)
        end
        self
      end

      private

      def append_other(value)
        case value
        when String then @strings.append(@text, value)
        when Symbol then @strings.append(@text, value.name)
        when Hash then hash(value)
        when Array then array(value)
        else @text << json(value)
        end
      rescue Serialize::Unwritable => error
        raise EncodingError, error.message
      end

      def hash(hash)
        first = true
        @text << "{"
        hash.each do |key, value|
          @text << "," unless first
          first = false
          @text << (@keys[key] ||= "#{@strings.append(+"", key.to_s)}:")
          append(value)
        end
        @text << "}"
      end

      def array(array)
        @text << "["
        array.each_with_index do |value, index|
          @text << "," unless index.zero?
          append(value)
        end
        @text << "]"
      end

      def json(value)
        defined?(ActiveSupport::JSON::Encoding) ? ActiveSupport::JSON.encode(value) : JSON.generate(value)
      end
    end
  end
end
