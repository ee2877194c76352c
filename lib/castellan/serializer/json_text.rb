# frozen_string_literal: true

require "json"

module Castellan
  module Serializer
    # Writes a Hash as JSON: like ActiveSupport if it is loaded, otherwise like the json gem.
    #
    #   JsonText.of({ data: { id: "1", type: :user } })   # => '{"data":{"id":"1","type":"user"}}'
    #
    # With json 2.10 or later (JSON::Coder), avoids the copies of Hashes and Strings
    # that ActiveSupport's `as_json` makes.
    module JsonText
      CODER = (JSON::Coder.new { |value, key| key ? value.to_s : known(value) } if defined?(JSON::Coder))
      private_constant :CODER

      class << self
        # @return [String] UTF-8
        # @raise [EncodingError] with the record and the member that cannot be written
        def of(value)
          Serialize::Text.for(Serialize.escape).append_json(String.new(encoding: Encoding::UTF_8), json(value))
        rescue JSON::GeneratorError, Serialize::Unwritable => error
          raise EncodingError, "#{place(value)}#{error.message}"
        end

        # Called by the Coder for each value that is not of a JSON class.
        # @api private
        def known(value)
          case value
          when String then String.new(Serialize::Text.utf8(value))
          when Hash then {}.update(value)
          when Array then Array.new(value)
          else
            json = value.as_json
            json.equal?(value) ? value.to_s : json
          end
        end

        private

        def json(value)
          return JSON.generate(value) unless Castellan.active_support_json?

          CODER ? CODER.generate(value) : JSON.generate(value.as_json)
        end

        def place(document)
          objects = document.is_a?(Hash) ? [document[:data], document[:included]].flatten.compact : []
          object = objects.find { |one| !writable?(one) } or return
          member, = (object[:attributes] || {}).find { |_, value| !writable?(value) }
          "#{object[:type]} #{object[:id].inspect}#{", member #{member.to_s.inspect}" if member}: "
        end

        def writable?(value)
          json([value]) ? true : false
        rescue JSON::GeneratorError, Serialize::Unwritable
          false
        end
      end
    end
  end
end
