# frozen_string_literal: true

module Castellan
  module Rows
    # Reads one node of a plan: its rows with everything that fits into their SELECT, and the links that do not.
    #
    #   reader = NodeReader.new(node, adapter, kept)
    #   reader.sql { |list| "SELECT #{list} FROM users" }   # => the statement
    #
    # Made for each request, because scopes are evaluated when it is made; what no scope takes part in is kept (`keep`).
    class NodeReader
      NONE = {}.freeze
      NOTHING = [].freeze
      private_constant :NONE, :NOTHING

      # @return [Plan::Node]
      # @return [Object] the adapter of its model
      # @return [Array<Link>] one for each of node.edges
      attr_reader :node, :adapter, :links

      # @param kept [Hash] what earlier readers kept, by identity of the node, edge or column
      # @param models [Hash] the nodes that are read as models, whose rows cannot carry links
      # @param plan_scopes [PlanScopes, nil] where scopes of resources take part
      # @param scopes [ViewerScopes, nil] what the viewer may see; nil: columns behind a scope are not looked at
      def initialize(node, adapter, kept, models = NONE, plan_scopes = nil, scopes = nil)
        @node = node
        @adapter = adapter
        @plan_scopes = plan_scopes
        @scopes = scopes
        @kept = kept
        @links = node.edges.map do |edge|
          kept[edge] || Link.of(edge, adapter, node.definition.id_column, own_rows: own_rows?(edge, models))
        end
        @expressions = node.columns.map { |column| kept[column] || expression(column) }
        @ends = node.columns.map { |column| adapter.at(column.path) }
        @joined = kept.fetch(node.columns) { JoinedPaths.of(node, adapter, plan_scopes) }
        @positions = links.map { |link| link ? link.expressions.map { |expression| further(expression) } : NOTHING }
        @selects = links.any? { |link| link&.select? }
        @width = @expressions.size
        @own_rows_sql = @single_own_rows_sql = NONE
        @computes = node.members.any? { |member| member.attribute.source == :computed }
        @by_key = node.definition.id_column == adapter.primary_key
      end

      # @return [Boolean] whether the ids are the primary key
      def by_key?
        @by_key
      end

      # @return [Boolean] whether some of the links take a SELECT of their own
      def selects?
        @selects
      end

      # @return [Boolean] whether a block computes one of the members
      def computes?
        @computes
      end

      # Keeps for later requests the links and columns that mean the same in each, and itself, with its texts, when all do. Called for
      # what a node leads to before the node itself.
      def keep
        links.each { |link| keep_link(link) if link&.stable? }
        @kept[node.columns] = @joined
        stable = node.columns.each_with_index.select { |column, _| adapter.stable_path?(column.path) && !along(column) }
        stable.each { |column, index| @kept[column] = @expressions[index] }
        return unless stable.size == node.columns.size && links.compact.all?(&:stable?)

        @list = parts(@expressions)
        @joined_list = joined_list if joins?
        keep_by_ids if adapter.constant_by_ids?
        @steady = coders.map { |coder| coder unless coder == :datetime }.freeze
        @changing = @steady.each_index.reject { |index| @steady[index] }.freeze
        @kept[node] = self
      end

      # @param joinable [Boolean] whether a join can be added to the statement
      # @yieldparam list [String] a SELECT list
      # @yieldparam joins [String, nil] what has to be added to FROM for it
      # @yieldreturn [String] the statement with that list
      # @return [String]
      def sql(joinable: true, &block)
        return yield(@joined_list || joined_list, @joined.text) if joinable && (@joined_list || joins?)

        around(@list || parts(@expressions), &block)
      end

      # @param count [Integer, nil] how many ids there are, nil where that is not known
      # @param condition [String, nil] a further one, of this request
      # @return [String] for ids given as one value
      def by_ids_sql(count, condition = nil)
        return by_ids(condition) if condition

        (count == 1 && @single_by_ids_sql) || @by_ids_sql || by_ids
      end

      # @return [Boolean] whether that text is the same in each request
      def by_ids_kept?
        !@by_ids_sql.nil?
      end

      # @param count [Integer] how many parents there are
      # @return [String] of the rows that carry their parent's key as a further column, for parents given as ids
      def own_rows_sql(link, count)
        (count == 1 && @single_own_rows_sql[link]) || @own_rows_sql[link] || own_rows(link)
      end

      # Keeps that text.
      # @param link [Link] the one that leads here, which means the same in each request, as these rows do
      def keep_own_rows(link)
        text = own_rows(link).freeze
        @own_rows_sql = { link => text }.compare_by_identity.freeze
        @single_own_rows_sql = { link => adapter.dialect.single(text).freeze }.compare_by_identity.freeze
      end

      # @param link [Link] of the parents to these rows
      # @return [Integer] the position of the parent's key: where the plan reads that column anyway, or after all others
      def key_position(link)
        column_position(link.parent_column) || @width
      end

      # @return [Plan::RowSet::InColumn, nil]
      def in_column(index)
        position = @positions[index].first
        position && Plan::RowSet::InColumn.new(position)
      end

      # @return [Array<Integer>] where the row holds what the link needs
      def positions(index)
        @positions[index]
      end

      # @return [Array<Symbol, nil>] nil where only the ORM can tell how a column's value is written
      def coders
        return Array.new(@ends.size) { |index| coder(index) } unless @steady
        return @steady if @changing.empty?

        coders = @steady.dup
        @changing.each { |index| coders[index] = coder(index) }
        coders
      end

      private

      def keep_link(link)
        @kept[link.edge] = link
        @kept[link.edge.node]&.keep_own_rows(link) if link.kind == :own_rows
      end

      def by_ids(condition = nil)
        sql { |list, joins| adapter.select_by_ids_sql(list, node.definition.id_column, joins, condition) }
      end

      def keep_by_ids
        @by_ids_sql = by_ids.freeze
        @single_by_ids_sql = adapter.dialect.single(@by_ids_sql).freeze
      end

      def own_rows(link)
        further = column_position(link.parent_column) ? [] : [Correlated.column(link.parent_column)]
        around(parts(@expressions + further)) { |list| link.own_rows_sql(list) }
      end

      # That of a time depends on the zone.
      def coder(index)
        @ends[index].coder(node.columns[index].name)
      end

      def expression(column)
        return Correlated.column(adapter.column_sql(column.name)) if column.own?

        Correlated.path(adapter, column.path, column.name, visible_along(column))
      end

      def along(column)
        @plan_scopes&.along(column)
      end

      # @return [Array<ScopedRows, nil>] one for each step of the path
      def visible_along(column)
        steps = along(column) or return NOTHING
        steps.map { |definition| definition && @scopes&.of(definition, adapter) }
      end

      # Rows that are their own links cannot be left out of one and not of the other.
      def own_rows?(edge, models)
        !models[edge.node] && edge.relationship.definitions.none?(&:scope)
      end

      # A subquery has a name of its own: the last part of its column's would hide the row's from the scope's ORDER BY.
      def column_position(text)
        @expressions.index { |expression| expression.column? && expression.text == text }
      end

      def listed(expression, index)
        expression.column? ? expression.text : "#{expression.within(adapter.qualified(expression.key))} AS castellan_c#{index}"
      end

      def further(expression)
        known = column_position(expression.text) if expression.column?
        return known if known

        @expressions << expression
        @expressions.size - 1
      end

      # Where the rows need no other name.
      def joins?
        return false unless @joined

        @expressions.each_with_index.none? { |expression, index| @joined.columns[index].nil? && expression.hides?(adapter.table_sql) }
      end

      def joined_list
        @expressions.each_with_index.map { |expression, index| @joined.columns[index] || listed(expression, index) }.join(", ")
      end

      def around((before, list, after))
        "#{before}#{yield list}#{after}"
      end

      # @return [Array<String>] what stands before the statement, its list, and what stands after it
      def parts(expressions)
        return wrapped(expressions) if expressions.any? { |expression| expression.hides?(adapter.table_sql) }

        ["", expressions.each_with_index.map { |expression, index| listed(expression, index) }.join(", "), ""]
      end

      # A subquery on the row's own table would take the row's columns for its own: so the rows become a table of another name.
      def wrapped(expressions)
        outer = expressions.each_with_index.map do |expression, index|
          expression.column? ? "castellan_rows.c#{index}" : expression.within("castellan_rows.c#{index}")
        end
        inner = expressions.each_with_index.map do |expression, index|
          "#{expression.column? ? expression.text : adapter.qualified(expression.key)} AS c#{index}"
        end
        ["SELECT #{outer.join(", ")} FROM (", inner.join(", "), ") castellan_rows"]
      end
    end
  end
end
