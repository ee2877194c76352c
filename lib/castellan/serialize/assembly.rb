# frozen_string_literal: true

module Castellan
  module Serialize
    # Joins the bytes of separately encoded records (see {RubyEncoder.encode_each}) to a document, without
    # parsing.
    #
    #   Assembly.call(:json_api, [['{"type":"users","id":"1"}', [["roles/2", '{"type":"roles","id":"2"}']]]], compound: true)
    #   # => '{"data":[{"type":"users","id":"1"}],"included":[{"type":"roles","id":"2"}]}'
    #
    # A record that several others include is written once, at its first occurrence.
    module Assembly
      module_function

      # @param format [Symbol] :json_api or :nested
      # @param records [Array<Array(String, Array<Array(String, String)>)>] each record's bytes, and [key,
      #   bytes] of its included records
      # @param primary [Array<String>] the keys ("type/id") of the primary records, which are excluded from
      #   `included`
      # @param compound [Boolean] whether to write `included`
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
