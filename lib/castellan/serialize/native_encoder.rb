# frozen_string_literal: true

module Castellan
  module Serialize
    # Writes documents with the C extension (ext/castellan), which gives the bytes that {RubyEncoder} gives.
    #
    #   NativeEncoder.encode(row_set, template, tail: ',"meta":{"total":3}').body
    #
    # Values pass from the driver's rows, or from PostgreSQL's own memory, to the document without a Ruby object each. What
    # is rare is left to Ruby through the methods below, so that it is decided in one place.
    class NativeEncoder
      class << self
        # See {RubyEncoder.encode}.
        def encode(row_set, template, single: false, tail: "")
          SecondLook.at(row_set) do |tables|
            holes = []
            Output.new(Native.encode(template, tables, single, tail, holes), holes)
          end
        end

        # See {RubyEncoder.encode_each}.
        def encode_each(row_set, template)
          SecondLook.at(row_set) { |tables| Native.encode_each(template, tables) }
        end

        # See {RubyEncoder.encode_part}.
        def encode_part(row_set, template)
          SecondLook.at(row_set) do |tables|
            holes = []
            found = []
            body = Native.encode_part(template, tables, holes, found)
            [Output.new(body, holes), found]
          end
        end

        # @return [Object] the template's constant bytes for C
        def compile(template)
          Native.compile(template)
        end

        # @return [Boolean] whether a `PG::Result` is read where it is; if not, its values are made first
        def reads_results?
          Native.reads_results?
        end

        # Called by the extension: the JSON of a value that it does not know.
        # @param member [Integer] position of the member, -1 for the id
        # @param coder [Symbol, nil] of the column, or :computed
        # @raise [EncodingError]
        def write(template, node, member, id, coder, value)
          parts = template.nodes[node]
          key = member.negative? ? "id" : parts.members[member].key
          coder or raise ArgumentError, NodeRows.no_coder(parts.type, key)
          json(template.text, coder, value)
        rescue Unwritable => error
          raise Unwritable.locate(error, type: parts.type, id: member.negative? ? nil : id, member: key,
                                         place: ([node, member] unless member.negative?))
        end

        # Called by the extension: says why an id, or a linked id, cannot be written.
        # @param kind [Integer] 0 for the record's id, 2 for a linked one, 3 for links and meta objects
        # @raise [EncodingError]
        def refuse(template, node, kind, edge, id, value)
          parts = template.nodes[node]
          raise Unwritable.locate(Unwritable.new(:utf8, value), type: parts.type, id: id, member: "links or meta") if kind == 3
          return id_text(value, parts.type, parts.edges[edge].key, id) if kind == 2

          id_text(value, parts.type, nil)
          raise Unwritable.locate(Unwritable.new(:id, value), type: parts.type, id: nil, member: "id")
        end

        # Called by the extension: the text of an id that is neither a small integer nor UTF-8.
        # @raise [EncodingError]
        def id_text(value, type, member, id = nil)
          Values.id(value)
        rescue Unwritable => error
          raise Unwritable.locate(error, type: type, id: id, member: member || "id")
        end

        # Called by the extension.
        # @raise [ArgumentError]
        def unknown_coder(type, coder)
          raise ArgumentError, NodeRows.unknown_coder(type, coder)
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
