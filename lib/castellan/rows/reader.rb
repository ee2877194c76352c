# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # Runs a whole plan: the primary rows, then level by level what they lead to, one statement each. Frozen, one for each plan.
    #
    #   Reader.new(plan, adapter).call(User.where(active: true))   # => RowSet
    #
    # The related records of a level are read once each, however many parents they have.
    class Reader
      def initialize(plan, adapter)
        @plan = plan
        @adapter = adapter
        @adapters = plan.nodes.to_h { |node|
          [node, node.equal?(plan.root) ? adapter : adapter.related(node.definition.model)]
        }.compare_by_identity
        @kept = {}.compare_by_identity
        plan.nodes.each { |node| NodeReader.new(node, @adapters.fetch(node), @kept).keep }
        @kept.freeze
        freeze
      end

      # @param scope [Object] the caller's relation or dataset, or {ChosenIds}
      # @return [Plan::RowSet]
      def call(scope)
        tables = {}.compare_by_identity
        scope.is_a?(ChosenIds) && scope.column == @plan.root.definition.id_column ? chosen(scope, tables) : primary(scope, tables)
        Plan::RowSet.new(tables.values_at(*@plan.nodes))
      end

      private

      def reader(node)
        @kept[node] || NodeReader.new(node, @adapters.fetch(node), @kept)
      end

      def primary(scope, tables)
        root = reader(@plan.root)
        scope = scope.relation if scope.is_a?(ChosenIds)
        fill(root, tables, scope) { |session| session.rows(root.sql { |list| @adapter.select_sql(scope, list) }) }
      end

      def chosen(choice, tables)
        root = reader(@plan.root)
        fill(root, tables, choice.scope) { |session| by_ids(root, choice.ids, session) }
      end

      def fill(reader, tables, scope = nil)
        reader.adapter.session do |session|
          rows = yield session
          links = reader.links.each_index.map { |index| link(reader, index, rows, session, tables) }
          members = ComputedMembers.new(reader, rows, session, scope)
          tables[reader.node] =
            Plan::RowSet::Table.new(node: reader.node, rows: rows, coders: members.coders, links: links, computed: members.to_h)
        end
      end

      def link(reader, index, rows, session, tables)
        link = reader.links[index]
        return own_rows(link, rows, session, tables) if link.kind == :own_rows

        found = reader.in_column(index) || link.association.adapter.session { |other| pairs(link, session.ids(rows, 0), other) }
        related(link, found, rows, session, tables) if link.edge.node
        found
      end

      def pairs(link, ids, session)
        Plan::RowSet::Pairs.new(ids.empty? ? [] : session.rows(link.pairs_sql, ids, kept: @kept.key?(link.edge)), 0, 1)
      end

      # Rows of a has_many carry the key of their parent: they are their own links.
      def own_rows(link, parents, session, tables)
        child = reader(link.edge.node)
        ids = session.ids(parents, 0)
        fill(child, tables) do |other|
          ids.empty? ? [] : other.rows(child.own_rows_sql(link), ids, kept: @kept.key?(child.node) && @kept.key?(link.edge))
        end
        Plan::RowSet::Pairs.new(tables[child.node].rows, child.key_position(link), 0)
      end

      def related(link, found, rows, session, tables)
        ids = related_ids(link, found, rows, session)
        child = reader(link.edge.node)
        fill(child, tables) { |other| by_ids(child, ids, other) }
      end

      def by_ids(reader, ids, session)
        ids.empty? ? [] : session.rows(reader.by_ids_sql, ids, kept: @kept.key?(reader.node) && reader.adapter.constant_by_ids?)
      end

      def related_ids(link, found, rows, session)
        return session.ids(found.rows, found.related_position).uniq if found.is_a?(Plan::RowSet::Pairs)

        ids = session.ids(rows, found.position)
        return ids.uniq unless link.kind == :grouped

        split(ids, link.association.adapter.integer?(link.edge.node.definition.id_column))
      end

      # Integers are read by JSON's parser, because `split` would make a string of each.
      def split(grouped, integer)
        text = grouped.uniq.join(",")
        integer ? JSON.parse("[#{text}]").uniq : text.split(",").uniq
      rescue JSON::ParserError # text in an integer column, which SQLite allows
        text.split(",").map(&:to_i).uniq
      end
    end
  end
end
