# frozen_string_literal: true

module Castellan
  module Serialize
    # Puts a document together from records that were written one by one (see {RubyEncoder.encode_each}): bytes joined, not parsed.
    #
    #   Assembly.call(:json_api, [['{"type":"users","id":"1"}', [["roles/2", '{"type":"roles","id":"2"}']]]], compound: true)
    #   # => '{"data":[{"type":"users","id":"1"}],"included":[{"type":"roles","id":"2"}]}'
    #
    # A record that several others include is written once, where it is first met.
    module Assembly
      module_function

      # @param records [Array<Array(String, Array<Array(String, String)>)>] a record's bytes, and key and bytes of what it includes
      # @param primary [Array<String>] the keys ("type/id") of the records themselves, which are never included again
      # @param tail [String] see {RubyEncoder.encode}
      # @return [String] UTF-8
      def call(format, records, primary: [], compound: false, tail: "")
        data = records.map(&:first).join(",")
        return "[#{data}]" if format == :nested

        included = compound ? %(,"included":[#{once(records, primary).join(",")}]) : ""
        %({"data":[#{data}]#{included}#{tail}})
      end

      def once(records, primary)
        seen = primary.to_h { |key| [key, true] }
        records.each_with_object([]) do |(_, included), written|
          included.each do |key, bytes|
            written << bytes unless seen.key?(key)
            seen[key] = true
          end
        end
      end
    end
  end
end
