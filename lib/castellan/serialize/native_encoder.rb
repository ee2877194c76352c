# frozen_string_literal: true

module Castellan
  module Serialize
    # Encodes documents with the C extension (ext/castellan), with the same bytes as {RubyEncoder}.
    #
    #   NativeEncoder.encode(row_set, template, tail: ',"meta":{"total":3}').body
    #
    # The extension reads values from the driver's rows, or from PostgreSQL's own memory, without a Ruby
    # object per value. It calls the methods below in rare cases, so that both encoders follow the same rules.
    class NativeEncoder
      class << self
        # See {RubyEncoder.encode}.
        def encode(row_set, template, single: false, tail: "")
          Serialize.retyping(row_set) do |tables|
            holes = []
            Output.new(Native.encode(template, tables, single, tail, holes), holes)
          end
        end

        # See {RubyEncoder.encode_each}.
        def encode_each(row_set, template)
          Serialize.retyping(row_set) { |tables| Native.encode_each(template, tables) }
        end

        # See {RubyEncoder.encode_part}.
        def encode_part(row_set, template)
          Serialize.retyping(row_set) do |tables|
            holes = []
            found = []
            body = Native.encode_part(template, tables, holes, found)
            [Output.new(body, holes), found]
          end
        end

        # @return [Object] the C copy of the template's constant bytes
        def compile(template)
          Native.compile(template)
        end

        # Called by the extension to encode a value that it does not support.
        # @param member [Integer] position of the member, -1 for the id
        # @param coder [Symbol, nil] the column's coder, or :computed
        # @return [String] JSON
        # @raise [EncodingError]
        def write(template, node, member, id, coder, value)
          parts = template.nodes[node]
          key = member.negative? ? "id" : parts.members[member].key
          coder or raise ArgumentError, Values.no_coder(parts.type, key)
          json(template.text, coder, value)
        rescue Unwritable => error
          raise Unwritable.locate(error, type: parts.type, id: member.negative? ? nil : id, member: key,
                                         place: ([node, member] unless member.negative?))
        end

        # Called by the extension to raise the error of an invalid id, linked id, link or meta.
        # @param kind [Integer] 0 for the record's id, 2 for a linked id, 3 for links and meta objects
        # @raise [EncodingError]
        def refuse(template, node, kind, edge, id, value)
          parts = template.nodes[node]
          raise Unwritable.locate(Unwritable.new(:utf8, value), type: parts.type, id: id, member: "links or meta") if kind == 3
          return id_text(value, parts.type, parts.edges[edge].key, id) if kind == 2

          id_text(value, parts.type, nil)
          raise Unwritable.locate(Unwritable.new(:id, value), type: parts.type, id: nil, member: "id")
        end

        # Called by the extension for an id that is neither a small integer nor UTF-8.
        # @raise [EncodingError]
        def id_text(value, type, member, id = nil)
          Values.id(value)
        rescue Unwritable => error
          raise Unwritable.locate(error, type: type, id: id, member: member || "id")
        end

        # Called by the extension to raise the error of an unknown coder.
        # @raise [ArgumentError]
        def unknown_coder(type, coder)
          raise ArgumentError, Values.unknown_coder(type, coder)
        end

        private

        def json(text, coder, value)
          buffer = String.new(encoding: Encoding::UTF_8)
          coder == :computed ? text.append_json(buffer, value) : Values.append(buffer, coder, value, text)
        end
      end
    end
  end
end
