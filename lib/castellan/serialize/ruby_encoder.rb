# frozen_string_literal: true

module Castellan
  module Serialize
    # Encodes documents in Ruby, without the C extension and as its oracle in tests.
    #
    #   RubyEncoder.encode(row_set, template, tail: ',"meta":{"total":3}').body
    #
    # `included` contains each related record once and no primary record (JSON:API 1.1,
    # "Compound Documents"), in the order of jsonapi-serializer, see {IncludedWalk}. A linked id
    # without a row appears in linkage only.
    class RubyEncoder
      MANY = %w([ ]).freeze
      private_constant :MANY

      # @param row_set [Plan::RowSet]
      # @param template [Template] the template of the row set's plan
      # @param single [Boolean] whether to write one object or null instead of an array
      # @param tail [String] bytes for the end of the document, `,"meta":{…}`; not for the nested format
      # @return [Output]
      # @raise [EncodingError] with type, id and member, if a value cannot be written
      def self.encode(row_set, template, single: false, tail: "")
        Serialize.retyping(row_set) { |tables| new(tables, template).document(single, tail) }
      end

      # Encodes each primary record separately, without included records.
      # @return [Array<Array(String, String, Array)>] id, bytes, holes; offsets of
      #   holes start at the record's own bytes
      def self.encode_each(row_set, template)
        Serialize.retyping(row_set) { |tables| new(tables, template).records }
      end

      # Encodes the primary records of one batch, separated by commas, and lists the records to include.
      # @return [Array(Output, Array)] the bytes; and alternately the position in plan.nodes and the id of
      #   each included record, in the order of {.encode}
      def self.encode_part(row_set, template)
        Serialize.retyping(row_set) { |tables| new(tables, template).part }
      end

      def initialize(tables, template)
        @template = template
        @text = template.text
        @sections = template.nodes.map { |parts| NodeRows.new(tables[parts.index], parts) }
        @root = @sections.first
        @linkage = Hash.new { |found, edge| found[edge] = edge.links.map { {} } }.compare_by_identity
        @body = +""
        @holes = []
      end

      def document(single, tail)
        rows = primary_rows
        rows = rows.first(1) if single
        @body << '{"data":' unless @template.nested?
        if single && rows.none? then @body << "null"
        else list(rows, *(MANY unless single)) { |section, row| write(section, row) }
        end
        return Output.new(@body, @holes) if @template.nested?

        list(included(rows), ',"included":[', "]") { |section, row| write(section, row) } if @template.compound?
        Output.new(@body << tail << "}", @holes)
      end

      def records
        primary_rows.map do |section, row|
          @body = +""
          @holes = []
          write(section, row)
          [section.id(row), @body, @holes]
        end
      end

      def part
        list(rows = primary_rows) { |section, row| write(section, row) }
        found = @template.compound? ? included(rows) : []
        [Output.new(@body, @holes), found.flat_map { |section, row| [section.parts.index, section.id(row)] }]
      end

      private

      def primary_rows
        return Array.new(@root.size) { |row| [@root, row] } unless @template.several_types?

        edge = @root.parts.edges.first
        (0...@root.size).filter_map { |row| found(edge, *@root.targets(row, edge).first) }
      end

      def list(items, open = "", close = "")
        @body << open
        further = false
        items.each do |item|
          @body << "," if further
          further = true
          yield item
        end
        @body << close
      end

      def included(rows)
        walk = IncludedWalk.new(rows.map { |section, row| [section.type, section.id(row)] }, &method(:related))
        rows.each { |section, row| walk.from(section, row) }
        walk.found.map { |found| [found.places.first, found.record] }
      end

      def related(section, row, visit)
        section.parts.edges.each do |edge|
          next unless edge.children.any? && shown?(section.asides&.edges, edge.position, row)

          section.targets(row, edge).each do |kind, id|
            inner, other = found(edge, kind, id)
            visit.call(inner, other, id) if other
          end
        end
      end

      def found(edge, kind = nil, id = nil)
        child = edge.children[kind] if kind
        section = @sections[child] if child
        row = section&.row_of(id)
        [section, row] if row
      end

      def write(section, row)
        parts = section.parts
        @body << parts.open
        id = section.id(row)
        write_id(section, row, id)
        return write_irregular(section, row, id) unless parts.regular

        parts.members.each_with_index { |member, position| member(section, row, id, position, member.before) }
        parts.edges.each { |edge| targets(edge, section.targets(row, edge), edge.before) if edge.before }
        @body << parts.close
        return unless parts.after

        after(section.asides&.after, row)
        @body << "}"
      end

      def write_id(section, row, id)
        return @text.append(@body, id) unless id.empty? || (@template.nested? && section.coder(0) == :integer)
        return Values.append(@body, section.coder(0), section.value(row, 0), @text) if @template.nested?

        raise Unwritable.new(:id, section.value(row, 0))
      rescue Unwritable => error
        raise Unwritable.locate(error, type: section.type, id: nil, member: "id")
      end

      def member(section, row, id, position, name)
        parts = section.parts
        member = parts.members[position]
        @body << name
        return @holes << @body.bytesize << member.hole << id if member.hole

        values = section.computed(position)
        return @text.append_json(@body, values[row]) if values

        coder = member.column && section.coder(member.column)
        coder or raise ArgumentError, Values.no_coder(section.type, member.key)
        Values.append(@body, coder, section.value(row, member.column), @text)
      rescue Unwritable => error
        raise Unwritable.locate(error, type: section.type, id: id, member: member.key, place: [parts.index, position])
      end

      # Writes linkage, or in the nested format the related records that have a row.
      def targets(edge, targets, name)
        @body << name
        targets = targets.filter_map { |kind, id| found(edge, kind, id) }.first(edge.to_many ? targets.size : 1) if @template.nested?
        return @body << "null" if targets.empty? && !edge.to_many

        linkage = @linkage[edge]
        list(targets, *(MANY if edge.to_many)) do |one, other|
          next write(one, other) if @template.nested?

          @body << (linkage[one][other] ||= "#{edge.links[one]}#{@text.quoted(other)}#{edge.link_end}")
        end
      end

      # Writes rows that have different members: with conditions, links and
      # meta of relationships, or several types.
      def write_irregular(section, row, id)
        members = section.parts.members.each_index.select { |position| shown?(section.asides&.members, position, row) }
        group("attributes", members) { |position| member(section, row, id, position, section.parts.members[position].name) }
        edges = section.parts.edges.select { |edge| edge.before && shown?(section.asides&.edges, edge.position, row) }
        group("relationships", edges) { |edge| irregular_edge(section, row, edge) }
        after(section.asides&.after, row)
        @body << "}"
      end

      # In the nested format, the object itself has the members.
      def group(name, items, &block)
        around = @template.nested? ? [",", ""] : [",\"#{name}\":{", "}"]
        list(items, *around, &block) if items.any?
      end

      def irregular_edge(section, row, edge)
        return targets(edge, section.targets(row, edge), edge.name) if @template.nested?

        @body << edge.name << "{"
        targets(edge, section.targets(row, edge), '"data":') if edge.data
        after(section.asides&.edges_after&.fetch(edge.position, nil), row, comma: edge.data)
        @body << "}"
      end

      def shown?(conditions, position, row)
        conditions.nil? || !conditions.key?(position) || conditions[position][row]
      end

      # Fragments are finished JSON that begins with a comma.
      def after(fragments, row, comma: true)
        fragment = fragments && fragments[row]
        return if fragment.nil? || fragment.empty?

        @text.append_json(@body, comma ? fragment : fragment.delete_prefix(","))
      end
    end
  end
end
