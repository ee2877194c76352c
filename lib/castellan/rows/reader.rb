# frozen_string_literal: true

module Castellan
  module Rows
    # Runs a whole plan: the primary rows, then level by level what they lead to, one statement each. Frozen, one for each plan.
    #
    #   Reader.new(plan, adapter).call(User.where(active: true))                  # => RowSet
    #   Reader.new(plan, adapter).call(Records.new([ada, alan]), viewer: alan)    # => RowSet
    #
    # The related records of a level are read once each, however many parents they have. A type that rows cannot say (see
    # {ModelReasons}) is loaded as models, in one statement.
    class Reader
      def initialize(plan, adapter)
        @plan = plan
        @adapter = adapter
        @adapters = {}.compare_by_identity
        @models = {}.compare_by_identity
        place(plan.root, adapter)
        @kept = {}.compare_by_identity
        plan.nodes.each { |node| NodeReader.new(node, @adapters.fetch(node), @kept, @models).keep unless @models[node] }
        @kept.freeze
        freeze
      end

      # @param scope [Object] the caller's relation or dataset, {ChosenIds} or {Records}
      # @param viewer [Object, nil] given to the blocks that take it
      # @return [Plan::RowSet]
      def call(scope, viewer: nil)
        reading = Reading.new(viewer)
        primary(scope, reading)
        Plan::RowSet.new(reading.tables.values_at(*@plan.nodes))
      end

      # @param node [Plan::Node]
      # @return [Object] its adapter
      def adapter_of(node)
        @adapters.fetch(node)
      end

      # Reads the records of a node that is related to another.
      # @param records [Array<Object>] each once
      # @return [Plan::RowSet::Table]
      def records(node, records, reading)
        adapter_of(node).instances.preload(records, preloads(node))
        reading.tables[node] = RecordReader.new(self, node, records, reading).table
      end

      # Reads the rows of a node by its ids, or its records where rows do not say all of it.
      # @param ids [Array<Object>]
      def by_ids(node, ids, reading)
        adapter = adapter_of(node)
        return records(node, load(node, ids), reading) if @models[node]

        child = reader(node)
        indexed = node.definition.id_column == adapter.primary_key
        fill(child, reading) do |session|
          ids.empty? ? [] : session.rows(child.by_ids_sql, ids, kept: kept?(node, adapter), indexed: indexed)
        end
      end

      # Reads the related rows of several types by their ids.
      # @param found [Array<Array(Object, Object, Integer)>] parent, related id and position of its type
      # @return [Plan::RowSet::Pairs]
      def of_several_types(edge, found, reading)
        edge.alternatives.each_with_index do |node, kind|
          by_ids(node, key_values(node, found.filter_map { |_, id, other| id if other == kind }.uniq), reading) if node
        end
        Plan::RowSet::Pairs.new(found, 0, 1, 2)
      end

      # Reads what records do not hold themselves, by their ids, in one statement.
      # @param node [Plan::Node] the part of a node that is to be read
      # @yieldparam rows [Array<Array>, PG::Result]
      # @yieldparam links [Array<Object>] see {Plan::RowSet::Table}
      # @yieldparam coders [Array<Symbol, nil>]
      def part(node, adapter, ids, reading)
        reader = NodeReader.new(node, adapter, @kept, @models)
        adapter.session do |session|
          rows = ids.empty? ? [] : session.rows(reader.by_ids_sql, ids)
          yield rows, links(reader, rows, session, reading), reader.coders
        end
      end

      private

      # What stands in a column of text that holds ids of several types.
      def key_values(node, ids)
        adapter_of(node).integer?(node.definition.id_column) ? Ids.integers(ids) : ids.map(&:to_s)
      end

      def place(node, adapter)
        @adapters[node] = adapter
        @models[node] = true unless adapter.model && ModelReasons.of(node, adapter).empty?
        node.edges.each { |edge| edge.nodes.each { |below| place(below, related_adapter(adapter, edge, below)) } }
      end

      # A resource without a model is of whatever the association leads to.
      def related_adapter(adapter, edge, node)
        model = node.definition.model
        return adapter.related(model) if model

        association = adapter.association(edge.relationship.name)
        association && association.reason.nil? ? association.adapter : ObjectRows.new
      end

      def reader(node)
        @kept[node] || NodeReader.new(node, @adapters.fetch(node), @kept, @models)
      end

      def kept?(node, adapter)
        @kept.key?(node) && adapter.constant_by_ids?
      end

      def primary(scope, reading)
        root = @plan.root
        return records(root, scope.to_a, reading) if scope.is_a?(Records)
        return by_ids(root, scope.ids, reading) if scope.is_a?(ChosenIds) && scope.column == root.definition.id_column
        return records(root, @adapter.load(scope), reading) if @models[root] || @adapter.renames?(scope)

        scope = scope.relation if scope.is_a?(ChosenIds)
        reader = reader(root)
        statement = reader.sql(joinable: @adapter.joinable?(scope)) { |list, joins| @adapter.select_sql(scope, list, joins) }
        fill(reader, reading) { |session| session.rows(statement, kept: true) }
      end

      def load(node, ids)
        ids.empty? ? [] : adapter_of(node).load_by_ids(ids, node.definition.id_column)
      end

      def preloads(node)
        node.members.flat_map { |member| member.attribute.preloads }.uniq
      end

      def fill(reader, reading)
        reader.adapter.session do |session|
          rows = yield session
          members = ComputedMembers.new(reader, rows, session, reading.viewer)
          reading.tables[reader.node] =
            Plan::RowSet::Table.new(node: reader.node, rows: rows, coders: members.coders, links: links(reader, rows, session, reading),
                                    computed: members.to_h, asides: members.asides, retype: members.method(:retyped))
        end
      end

      def links(reader, rows, session, reading)
        Array.new(reader.links.size) { |index| link(reader, index, rows, session, reading) }
      end

      def link(reader, index, rows, session, reading)
        link = reader.links[index]
        return unless link
        return own_rows(link, rows, session, reading) if link.kind == :own_rows
        return polymorphic(link, reader.positions(index), rows, session, reading) if link.kind == :polymorphic

        found = reader.in_column(index) || link.association.adapter.session { |other| pairs(link, reading.ids(rows, session), other) }
        return found unless link.edge.node

        ids = related_ids(link, found, rows, session)
        child = by_ids(link.edge.node, ids, reading)
        link.loose ? Dangling.dropped(found, rows, child.rows, ids, session) : found
      end

      def polymorphic(link, positions, rows, session, reading)
        found = link.rows(*[0, *positions].map { |position| session.column(rows, position) })
        of_several_types(link.edge, found, reading)
      end

      def pairs(link, ids, session)
        return Plan::RowSet::Pairs.new([], 0, 1) if ids.empty?

        kept = @kept.key?(link.edge)
        lists = link.lists_sql(ids.size)
        rows = session.rows(lists || link.pairs_sql, ids, kept: kept, indexed: kept && link.indexed)
        lists ? Plan::RowSet::Lists.new(rows) : Plan::RowSet::Pairs.new(rows, 0, 1)
      end

      # Rows of a has_many carry the key of their parent: they are their own links.
      def own_rows(link, parents, session, reading)
        child = reader(link.edge.node)
        ids = reading.ids(parents, session)
        kept = @kept.key?(child.node) && @kept.key?(link.edge)
        fill(child, reading) do |other|
          ids.empty? ? [] : other.rows(child.own_rows_sql(link), ids, kept: kept, indexed: kept && link.indexed)
        end
        Plan::RowSet::Pairs.new(reading.tables[child.node].rows, child.key_position(link), 0)
      end

      def related_ids(link, found, rows, session)
        return IdList.distinct(found.related_text) if found.is_a?(Plan::RowSet::Lists)
        return session.ids(found.rows, found.related_position).uniq if found.is_a?(Plan::RowSet::Pairs)

        ids = session.ids(rows, found.position)
        return ids.uniq unless link.kind == :grouped

        split(ids, link.association.adapter.integer?(link.edge.node.definition.id_column))
      end

      def split(grouped, integer)
        integer ? IdList.distinct(grouped) : grouped.uniq.join(",").split(",").uniq
      end
    end
  end
end
