# frozen_string_literal: true

require "json"

module Castellan
  module Serializer
    # The JSON of a document that is a hash, as ActiveSupport would write it where that is loaded, and as the json gem otherwise.
    #
    #   JsonText.of({ data: { id: "1", type: :user } })   # => '{"data":{"id":"1","type":"user"}}'
    #
    # Only what JSON has no word for (times, decimals) is made into what it has, without the copies that `as_json` makes of every
    # hash and text; the json gem writes the rest, and what ActiveSupport escapes besides is escaped in the whole text at once.
    module JsonText
      # Asks for what JSON has no word for while it writes (json 2.10): a third of the time that looking for it beforehand takes.
      CODER = (JSON::Coder.new { |value, key| key ? value.to_s : known(value) } if defined?(JSON::Coder))
      private_constant :CODER

      # @return [Object] of JSON's own classes; what it holds is asked for in its turn
      def self.known(value)
        case value
        when String then utf8(value)
        when Hash then {}.update(value)
        when Array then Array.new(value)
        else
          json = value.as_json
          json.equal?(value) ? value.to_s : json
        end
      end

      def self.utf8(text)
        String.new(Serialize::Text.utf8(text))
      rescue Serialize::Unwritable => error
        raise JSON::GeneratorError.new(error.message, text)
      end
      private_class_method :known, :utf8

      class << self
        # @param value [Object]
        # @return [String] UTF-8
        # @raise [EncodingError] naming the record and the member that cannot be written
        def of(value)
          Serialize::Text.for(Serialize.escape).append_json(String.new(encoding: Encoding::UTF_8), json(value))
        rescue JSON::GeneratorError => error
          raise EncodingError, "#{place(value)}#{error.message}"
        end

        private

        def json(value)
          CODER && rails? ? CODER.generate(value) : JSON.generate(plain(value))
        end

        # The same beforehand, for an older json, or without ActiveSupport.
        def plain(value)
          case value
          when String, Integer, Symbol, nil, true, false then value
          when Hash then value.transform_values { |inner| plain(inner) }
          when Array then value.map { |inner| plain(inner) }
          when Float then value.finite? || !rails? ? value : nil
          else other(value)
          end
        end

        def other(value)
          return value unless value.respond_to?(:as_json)

          json = value.as_json
          json.equal?(value) ? value : plain(json)
        end

        def rails?
          defined?(ActiveSupport::JSON::Encoding) ? true : false
        end

        # Looked for only when something could not be written.
        def place(document)
          return unless document.is_a?(Hash)

          objects = [*(document[:data].is_a?(Hash) ? [document[:data]] : document[:data]), *document[:included]]
          object = objects.find { |one| !writable?(one) } or return
          member, = (object[:attributes] || {}).find { |_, value| !writable?(value) }
          "#{object[:type]} #{object[:id].inspect}#{", member #{member.to_s.inspect}" if member}: "
        end

        def writable?(value)
          json([value]) ? true : false
        rescue JSON::GeneratorError
          false
        end
      end
    end
  end
end
