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
      NOTHING = [].freeze
      private_constant :NOTHING

      def initialize(plan, adapter)
        @plan = plan
        @adapter = adapter
        @adapters = {}.compare_by_identity
        @models = {}.compare_by_identity
        @scopes = PlanScopes.of(plan, adapter)
        place(plan.root, adapter)
        @kept = {}.compare_by_identity
        plan.nodes.reverse_each { |node| NodeReader.new(node, @adapters.fetch(node), @kept, @models, @scopes).keep unless @models[node] }
        @kept.freeze
        freeze
      end

      # @param scope [Object] the caller's relation or dataset, {ChosenIds} or {Records}
      # @param viewer [Object, nil] given to the blocks that take it
      # @param scopes [ViewerScopes] what this viewer may see
      # @return [Plan::RowSet]
      def call(scope, viewer: nil, scopes: ViewerScopes.new(viewer))
        @scopes.sql(scopes)
        reading = Reading.new(viewer, scopes)
        given?(scope) ? given(scope, reading) : by_statement(scope, reading)
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

      # Asks for the rows of a node by its ids, or reads its records where rows do not say all of it.
      # @param ids [Array<Object>]
      # @yieldparam table [Plan::RowSet::Table] once its rows are there
      def by_ids(node, ids, reading, &found)
        return by_records(node, ids, reading, &found) if @models[node]

        reader = reader(node, reading)
        return fill(reader, NOTHING, reading, &found) if ids.empty?

        linkage = linkage(reader, reading)
        condition = condition(node, reading)
        sql = reader.by_ids_sql(ids.size, condition)
        reading.ask(Query.new(reader.adapter, sql, ids, condition.nil? && reader.by_ids_kept?, reader.by_key?) { |rows|
          fill(reader, rows, reading, linkage, &found)
        })
        linkage.prefetch(ids) if reader.by_key? && reader.selects? && reader.adapter.overlaps?
      end

      # Reads the related rows of several types by their ids.
      # @param found [Array<Array(Object, Object, Integer)>] parent, related id and position of its type
      # @return [Plan::RowSet::Pairs]
      def of_several_types(edge, found, reading)
        edge.alternatives.each_with_index do |node, kind|
          next unless node

          ids = key_values(node, found.filter_map { |_, id, other| id if other == kind }.uniq)
          by_ids(node, ids, reading) { |table| Dangling.reject!(found, kind, table.rows) if ColumnValues.count(table.rows) != ids.size }
        end
        Plan::RowSet::Pairs.new(found, 0, 1, 2)
      end

      # Reads what records do not hold themselves, by their ids, in one statement.
      # @param node [Plan::Node] the part of a node that is to be read
      # @yieldparam rows [Array<Array>, PG::Result]
      # @yieldparam links [Array<Object>] see {Plan::RowSet::Table}
      # @yieldparam coders [Array<Symbol, nil>]
      def part(node, adapter, ids, reading)
        reader = NodeReader.new(node, adapter, @kept, @models, @scopes, reading.scopes)
        rows = NOTHING
        reading.ask(Query.new(adapter, reader.by_ids_sql(ids.size), ids) { |found| rows = found }) unless ids.empty?
        reading.run
        links = links(reader, rows, reading)
        reading.run
        yield rows, links, reader.coders
      end

      # @param node [Plan::Node]
      # @return [NodeReader]
      def reader(node, reading)
        @kept[node] || NodeReader.new(node, @adapters.fetch(node), @kept, @models, @scopes, reading.scopes)
      end

      # @param column [Plan::Column]
      # @return [Array<Resource::Definition, nil>, nil] see {PlanScopes#along}
      def along(column)
        @scopes.along(column)
      end

      # @param part [Plan::Node, Plan::Node::Edge]
      # @return [Boolean] whether its text is the same in each request
      def kept?(part)
        @kept.key?(part)
      end

      # Makes the table of rows that were read, and asks for what they lead to.
      # @yieldparam table [Plan::RowSet::Table]
      def fill(reader, rows, reading, linkage = linkage(reader, reading))
        members = ComputedMembers.new(reader, rows, ColumnValues, reading.viewer)
        table = Plan::RowSet::Table.new(node: reader.node, rows: rows, coders: members.coders, links: NOTHING, computed: members.to_h,
                                        asides: members.asides, retype: members)
        reading.tables[reader.node] = table
        yield table if block_given?
        table.links = linkage.of(rows) if linkage
      end

      private

      def linkage(reader, reading)
        Linkage.new(self, reader, reading) unless reader.links.empty?
      end

      def links(reader, rows, reading)
        linkage = linkage(reader, reading)
        linkage ? linkage.of(rows) : NOTHING
      end

      # What stands in a column of text that holds ids of several types.
      def key_values(node, ids)
        adapter_of(node).integer?(node.definition.id_column) ? Ids.integers(ids) : ids.map(&:to_s)
      end

      def place(node, adapter)
        @adapters[node] = adapter
        @models[node] = true unless adapter.model && ModelReasons.of(node, adapter).empty?
        node.edges.each { |edge| edge.nodes.each { |below| place(below, Rows.related(adapter, edge.relationship, below.definition)) } }
      end

      def chosen?(scope)
        scope.is_a?(ChosenIds) && scope.column == @plan.root.definition.id_column
      end

      # Whether no statement has to be made of the scope.
      def given?(scope)
        scope.is_a?(Records) || chosen?(scope) || @models[@plan.root] || @adapter.renames?(scope)
      end

      def given(scope, reading)
        root = @plan.root
        if scope.is_a?(Records) then records(root, scope.to_a, reading)
        elsif chosen?(scope) then by_ids(root, scope.ids, reading)
        else records(root, @adapter.load(scope), reading)
        end
        reading.run
      end

      # On one connection from the making of the statement on: one that goes back to its pool in between costs as much as a short SELECT.
      def by_statement(scope, reading)
        scope = scope.relation if scope.is_a?(ChosenIds)
        @adapter.session do
          reader = reader(@plan.root, reading)
          statement = reader.sql(joinable: @adapter.joinable?(scope)) { |list, joins| @adapter.select_sql(scope, list, joins) }
          reading.ask(Query.new(@adapter, statement, nil, true) { |rows| fill(reader, rows, reading) })
          reading.run
        end
      end

      def by_records(node, ids, reading)
        found = ids.empty? ? ids : adapter_of(node).load_by_ids(ids, node.definition.id_column, condition(node, reading))
        table = records(node, found, reading)
        yield table if block_given?
      end

      # @return [String, nil] what the viewer may see of the node's type
      def condition(node, reading)
        reading.scopes.of(node.definition, adapter_of(node))&.condition
      end

      def preloads(node)
        node.members.flat_map { |member| member.attribute.preloads }.uniq
      end
    end
  end
end
