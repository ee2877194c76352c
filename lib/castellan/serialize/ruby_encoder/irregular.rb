# frozen_string_literal: true

module Castellan
  module Serialize
    class RubyEncoder
      # Encodes rows that differ in their members: conditional members, relationships with links, meta objects
      # or several types. All other rows use the template's constant bytes.
      module Irregular
        private

        def write_irregular(section, number)
          parts = section.parts
          id = section.id(number)
          @body << parts.open
          write_id(section, number, id)
          group("attributes", shown_members(section, number)) { |member, position| irregular_member(section, number, id, member, position) }
          group("relationships", shown_edges(section, number)) { |edge| irregular_edge(section, number, edge) }
          after(section.asides&.after, number)
          @body << "}"
        end

        # In the nested format, members belong to the object itself.
        def group(name, items)
          return if items.empty?

          @body << (@template.nested? ? "," : ",\"#{name}\":{")
          items.each_with_index do |item, index|
            @body << "," unless index.zero?
            yield item
          end
          @body << "}" unless @template.nested?
        end

        def shown_members(section, number)
          section.parts.members.each_with_index.select { |_, position| shown?(section.asides&.members, position, number) }
        end

        def shown_edges(section, number)
          section.parts.edges.select { |edge| edge.before && edge_shown?(section, number, edge) }
        end

        def edge_shown?(section, number, edge)
          shown?(section.asides&.edges, edge.position, number)
        end

        def shown?(conditions, position, number)
          conditions.nil? || !conditions.key?(position) || conditions[position][number]
        end

        def irregular_member(section, number, id, member, position)
          @body << member.name
          return @holes << @body.bytesize << member.hole << id if member.hole

          member_value(section, number, member, position)
        rescue Unwritable => error
          raise Unwritable.locate(error, type: section.parts.type, id: id, member: member.key, place: [section.parts.index, position])
        end

        def irregular_edge(section, number, edge)
          @body << edge.name
          return nested_targets(section, number, edge) if @template.nested?

          @body << "{"
          start = @body.bytesize
          irregular_data(section.targets(number, edge), edge) if edge.data
          after(section.asides&.edges_after&.fetch(edge.position, nil), number, comma: @body.bytesize > start)
          @body << "}"
        end

        def irregular_data(targets, edge)
          @body << '"data":'
          return list("[", targets, "]") { |kind, id| kind_linkage(edge, kind, id) } if edge.to_many

          targets.empty? ? @body << "null" : kind_linkage(edge, *targets.first)
        end

        def kind_linkage(edge, kind, id)
          @body << edge.links[kind]
          @text.append(@body, id)
          @body << edge.link_end
        end

        def nested_targets(section, number, edge)
          found = section.targets(number, edge).filter_map do |kind, id|
            related = edge.children[kind] && @sections[edge.children[kind]]
            row = related&.number_of(id)
            [related, row] if row
          end
          return list("[", found, "]") { |related, row| write(related, row) } if edge.to_many

          found.empty? ? @body << "null" : write(*found.first)
        end

        def after(fragments, number, comma: true)
          fragment = fragments && fragments[number]
          return if fragment.nil? || fragment.empty?

          @text.append_json(@body, comma ? fragment : fragment.delete_prefix(","))
        end
      end
    end
  end
end
