# frozen_string_literal: true

module Castellan
  class Document
    # Describes a document: its statements, why types need models, and whether and why it is cached.
    #
    #   puts UserResource.document(User.active, include: "roles").explain
    #   # users: id, email, employee.id from users
    #   #   roles: linkage, and the included records: id, title from roles
    #   # tables: assignments, employees, roles, users
    #   # kept: the document, while no write changes what it is made of
    class Explanation
      def initialize(document, adapter)
        @document = document
        @adapter = adapter
      end

      def to_s
        kept = kept_line # reads the version, before anything else
        [*root_lines(@document.plan.root), "format: #{@document.plan.format}", "statement: #{@document.statement}", tables_line, *kept]
          .join("\n")
      end

      private

      def root_lines(node)
        return node_lines(node, "") unless node.definition.several_tables?

        types = node.definition.types.map(&:type).join(", ")
        ["#{node.definition.type}: the ids of #{types} in one order, in one statement", *edge_lines(node, node.edges.first, @adapter, "  ")]
      end

      def node_lines(node, indent)
        type = node.definition.type
        adapter = @adapter.related(node.definition.model)
        ["#{indent}#{type}: #{columns(node)} from #{adapter.table}", *model_reasons(node, adapter, indent), *reasons(node, indent),
         *scope_lines(node, adapter, indent), *node.edges.flat_map { |edge| edge_lines(node, edge, adapter, "#{indent}  ") }]
      end

      def columns(node)
        node.columns.map { |column| [*column.path, column.name].join(".") }.join(", ")
      end

      def edge_lines(node, edge, adapter, indent)
        name = edge.relationship.name
        return edge.nodes.flat_map { |inner| node_lines(inner, indent) } if edge.relationship.itself?

        types = edge.relationship.definitions.map(&:type).join(" or ")
        return ["#{indent}#{name}: neither linkage nor records, unless #{types} are included"] unless edge.data
        return ["#{indent}#{name}: #{linkage(node, edge, adapter, types)}"] unless edge.included?

        ["#{indent}#{name}: #{"linkage, and " if edge.written}the included records:"] +
          edge.nodes.flat_map { |node| node_lines(node, "#{indent}  ") }
      end

      def linkage(node, edge, adapter, types)
        scoped = edge.relationship.definitions.select(&:scope).map { |definition| "; #{scope_of(definition, adapter)}" }.join
        return "linkage only, no record of #{types} is loaded#{scoped}" unless Rows::ModelReasons.link_by_records?(node, edge, adapter)

        "linkage only, made of the records of #{types}#{scoped}"
      end

      # Lists the resource scopes that apply to the node's rows or to the path of a column.
      def scope_lines(node, adapter, indent)
        own = [node.definition]
        along = node.columns.map { |column| Rows::PlanScopes.of(@document.plan, @adapter).along(column) }
        along = along.flatten.compact.flat_map { |definition| [definition, *definition.types] }
        [*own, *along].uniq.select(&:scope).map do |definition|
          "#{indent}  scope of #{definition.name}: #{scope_of(definition, adapter)} (#{definition.scope.location})"
        end
      end

      def scope_of(definition, adapter)
        @document.scopes.of(definition, adapter)&.condition || "all rows are visible"
      end

      def model_reasons(node, adapter, indent)
        found = Rows::ModelReasons.of(node, adapter)
        reason = adapter.scopes.reason(@document.paged) if node.equal?(@document.plan.root) && adapter.model
        found += ["the scope: #{reason}"] if reason
        return [] if found.empty?

        ["#{indent}  the models of this type are loaded once, in one batch, and all its members are read from them, because:",
         *found.map { |reason| "#{indent}    #{reason}" }]
      end

      def reasons(node, indent)
        node.members.filter_map do |member|
          name = member.attribute.name
          case member.attribute.source
          when :computed then "#{indent}  #{name}: computed from #{member.attribute.columns.join(", ")}"
          when :viewer then "#{indent}  #{name}: filled in for the viewer, one batch a document"
          end
        end
      end

      def tables_line
        tables = @document.tables
        return "tables: not known" unless tables

        "tables: #{tables.sort.join(", ")}"
      end

      # Reads the version of the tables only if the document can be cached.
      def kept_line
        return unless @document.definition.caching

        never = @document.unkeepable
        return ["kept: never, because:", *never.map { |reason| "  #{reason}" }] if never.any?

        reason = @document.not_kept
        return "kept: not now: #{reason}" if reason

        parts = @document.parts.map { |table, column, value| "#{table} with #{column} = #{value}" }
        ["kept: the document, while no write changes what it is made of#{" (of #{parts.join(", ")})" if parts.any?}", *unversioned_line]
      end

      def unversioned_line
        tables = @document.unversioned
        return if tables.empty?

        "the viewer's values are read in each request, because the version of #{tables.join(", ")} cannot be read: " \
          "add castellan_versions #{tables.map { |table| table.to_sym.inspect }.join(", ")} to a migration, or correct the name"
      end
    end
  end
end
