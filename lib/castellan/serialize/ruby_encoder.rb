# frozen_string_literal: true

require_relative "ruby_encoder/irregular"

module Castellan
  module Serialize
    # Encodes documents in Ruby, row by row: the fallback without a C compiler, and the oracle of the C
    # encoder in tests.
    #
    #   RubyEncoder.encode(row_set, template, tail: ',"meta":{"total":3}').body
    #
    # `included` holds each related record once and no primary record (JSON:API 1.1, "Compound Documents").
    # Its order is jsonapi-serializer's: by primary record, then by include; a related record follows the
    # records that it includes itself. A linked id without a row appears in linkage only.
    class RubyEncoder
      include Irregular

      # @param row_set [Plan::RowSet]
      # @param template [Template] the template of the row set's plan
      # @param single [Boolean] whether to write one object or null instead of an array
      # @param tail [String] bytes for the end of the document, such as `,"meta":{…}`; ignored in the nested
      #   format
      # @return [Output]
      # @raise [EncodingError] with type, id and member of a value that cannot be written
      def self.encode(row_set, template, single: false, tail: "")
        SecondLook.at(row_set) { |tables| new(tables, template).document(single: single, tail: tail) }
      end

      # Encodes each primary record separately with its included records, for record caches.
      # @return [Array<Array(String, String, Array, Array)>] id, bytes, included ([key "type/id", bytes,
      #   holes] each), holes; offsets of holes count from the start of their own bytes
      def self.encode_each(row_set, template)
        SecondLook.at(row_set) { |tables| new(tables, template).records }
      end

      # Encodes the primary records of one batch, separated by commas, and lists the records to include
      # without encoding them.
      # @return [Array(Output, Array)] the bytes, and a flat list of node position in plan.nodes and id, each
      #   record once, in the order in which {.encode} includes them
      def self.encode_part(row_set, template)
        SecondLook.at(row_set) { |tables| new(tables, template).part }
      end

      def initialize(tables, template)
        @template = template
        @text = template.text
        @linkage = {}.compare_by_identity
        @sections = template.nodes.map { |parts| NodeRows.new(tables[parts.index], parts) }
        start
      end

      def document(single:, tail:)
        return nested(single) if @template.nested?

        @body << '{"data":'
        primary(single)
        included(single) if @template.compound?
        @body << tail << "}"
        Output.new(@body, @holes)
      end

      def records
        root = @sections.first
        (0...root.size).map do |number|
          bytes, holes = fragment { write(root, number) }
          [root.id(number), bytes, @template.compound? ? alone(root, number) : [], holes]
        end
      end

      def part
        root = @sections.first
        all(root)
        found = @template.compound? ? reached(root, 0...root.size) : []
        [Output.new(@body, @holes), found.flat_map { |section, row| [section.parts.index, section.id(row)] }]
      end

      private

      def start
        @body = +""
        @holes = []
      end

      def fragment
        start
        yield
        [@body, @holes]
      end

      def nested(single)
        primary(single)
        Output.new(@body, @holes)
      end

      def primary(single)
        root = @sections.first
        return root.size.zero? ? @body << "null" : write(root, 0) if single

        @body << "["
        all(root)
        @body << "]"
      end

      def all(root)
        list("", 0...root.size, "") { |number| write(root, number) }
      end

      def list(open, items, close)
        @body << open
        items.each_with_index do |item, position|
          @body << "," unless position.zero?
          yield item
        end
        @body << close
      end

      def included(single)
        root = @sections.first
        found = reached(root, single ? (0...[root.size, 1].min) : (0...root.size))
        @body << ","
        list('"included":[', found, "]") { |section, number| write(section, number) }
      end

      def alone(root, number)
        reached(root, [number]).map { |section, row| ["#{section.parts.type}/#{section.id(row)}", *fragment { write(section, row) }] }
      end

      # @return [Array<Array(NodeRows, Integer)>] the records that these primary records include
      def reached(root, numbers)
        forget(root, numbers)
        found = []
        numbers.each { |number| walk(root, number, found) }
        found
      end

      # Resets the visited records; primary records count as written.
      def forget(root, numbers)
        @walked = @sections.map { {} }
        @known = Hash.new { |known, type| known[type] = {} }
        type = root.parts.type
        return unless @sections.any? { |section| !section.equal?(root) && section.parts.type == type }

        numbers.each { |number| @known[type][root.id(number)] = true }
      end

      def walk(section, number, found)
        section.parts.edges.each do |edge|
          next unless edge.children.any? && edge_shown?(section, number, edge)

          walk_targets(section.targets(number, edge), edge, found)
        end
      end

      def walk_targets(targets, edge, found)
        targets.each do |kind, id|
          child = edge.children[kind]
          visit(@sections[child], id, found) if child && !@walked[child][id]
        end
      end

      def visit(section, id, found)
        @walked[section.parts.index][id] = true
        number = section.number_of(id) or return

        walk(section, number, found)
        known = @known[section.parts.type]
        return if known[id]

        known[id] = true
        found << [section, number]
      end

      def write(section, number)
        parts = section.parts
        return write_irregular(section, number) unless parts.regular

        id = section.id(number)
        @body << parts.open
        write_id(section, number, id)
        members(section, number, id)
        parts.edges.each { |edge| edge(section, number, edge) if edge.before }
        @body << parts.close
        return unless parts.after

        after(section.asides&.after, number)
        @body << "}"
      end

      def write_id(section, number, id)
        return @text.append(@body, id) unless id.empty? || (@template.nested? && section.coder(0) == :integer)
        return Values.append(@body, section.coder(0), section.value(number, 0), @text) if @template.nested?

        raise Unwritable.new(:id, section.value(number, 0))
      rescue Unwritable => error
        raise Unwritable.locate(error, type: section.parts.type, id: nil, member: "id")
      end

      def members(section, number, id)
        section.parts.members.each_with_index { |member, position| member(section, number, id, member, position) }
      end

      def member(section, number, id, member, position)
        @body << member.before
        return @holes << @body.bytesize << member.hole << id if member.hole

        member_value(section, number, member, position)
      rescue Unwritable => error
        raise Unwritable.locate(error, type: section.parts.type, id: id, member: member.key, place: [section.parts.index, position])
      end

      def member_value(section, number, member, position)
        values = section.computed(position)
        return @text.append_json(@body, values[number]) if values

        coder = member.column && section.coder(member.column)
        coder or raise ArgumentError, NodeRows.no_coder(section.parts.type, member.key)
        Values.append(@body, coder, section.value(number, member.column), @text)
      end

      def edge(section, number, edge)
        @body << edge.before
        ids = section.linked(number, edge)
        return nest(@sections[edge.child], ids, edge.to_many) if @template.nested?

        linkage = linkage(edge)
        return @body << "[" << ids.map { |id| linkage[id] }.join(",") << "]" if edge.to_many

        @body << (ids.empty? ? "null" : linkage[ids.first])
      end

      # Memoized, because many records link to the same few.
      # @return [Hash{String => String}] linkage by id
      def linkage(edge)
        @linkage[edge] ||= Hash.new { |written, id| written[id] = "#{edge.link}#{@text.quoted(id)}#{edge.link_end}" }
      end

      def nest(section, ids, to_many)
        numbers = ids.filter_map { |id| section.number_of(id) }
        return list("[", numbers, "]") { |row| write(section, row) } if to_many

        numbers.empty? ? @body << "null" : write(section, numbers.first)
      end
    end
  end
end
