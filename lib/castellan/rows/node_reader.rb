# frozen_string_literal: true

module Castellan
  module Rows
    # Reads one node of a plan: its rows, with everything that fits into their SELECT, and its links.
    #
    #   reader = NodeReader.new(node, adapter, kept)
    #   reader.sql { |list| "SELECT #{list} FROM users" }   # => the statement
    #
    # Built for each request, because scopes are evaluated; links and
    # readers without scopes are reused ({#keep}).
    class NodeReader
      NONE = {}.freeze
      NOTHING = [].freeze
      # Up to this number of rows, a subquery for each row is as fast as a join (measured on
      # tables of 1,000 and of 100,000 rows).
      FEW = 100
      private_constant :NONE, :NOTHING, :FEW

      # @return [Plan::Node]
      # @return [Object] the adapter of the node's model
      # @return [Array<Link>] one for each of node.edges
      attr_reader :node, :adapter, :links

      # @param kept [Hash] readers and links to reuse, by node or edge, compared by identity
      # @param models [Hash] the nodes that are read through models, whose rows have no columns for links
      # @param plan_scopes [PlanScopes, nil] nil if no resource of the plan has a scope
      # @param scopes [ViewerScopes, nil] which rows the viewer may see; nil ignores scopes. The SQL has their marks, see
      #   {ViewerScopes#filled}, so it is the same for all viewers of whom the same scopes hide rows
      # @param whole [Boolean] whether all rows of the table are read
      def initialize(node, adapter, kept, models = NONE, plan_scopes = nil, scopes = nil, whole: false)
        @node = node
        @adapter = adapter
        @plan_scopes = plan_scopes
        @narrowed = !scopes.nil?
        @kept = kept
        @links = node.edges.map do |edge|
          kept[edge] || Link.of(edge, adapter, node.definition.id_column, own_rows: own_rows?(edge, models), whole: whole)
        end
        @expressions = node.columns.map { |column| expression(column, scopes) }
        @ends = node.columns.map { |column| adapter.at(column.path) }
        @positions = links.map { |link| link ? link.expressions.map { |expression| further(expression) } : NOTHING }
        @selects = links.any? { |link| link&.select? }
        @width = @expressions.size
        @own_rows_sql = NONE
        @values = adapter.dialect.name == :postgres ? joined_values : NOTHING
        @joinable = !@values.empty?
        @joined = {}
        @computes = node.asides.any? || node.members.any? { |member| member.attribute.source == :computed }
        @by_key = node.definition.id_column == adapter.primary_key
      end

      # @return [Boolean] whether the node's id is the primary key
      def by_key? = @by_key

      # @return [Boolean] whether any links need their own SELECT
      def selects? = @selects

      # @return [Boolean] whether a block computes a member, a link or a meta object
      attr_reader :computes
      alias computes? computes

      # Stores links that are the same in every request, and this reader if its columns are the same
      # too. Call it for related nodes first.
      # @param now (see Association#kept?)
      def keep(now)
        links.each { |link| keep_link(link) if link&.kept?(now) }
        return unless links.compact.all? { |link| link.kept?(now) }
        return unless node.columns.all? { |column| adapter.stable_path?(column.path, now) && (@narrowed || !along(column)) }

        @list = parts(@expressions).freeze
        @joined = %i[unique all page].to_h { |reach| [reach, joined(reach)] }.freeze
        @lists = %i[unique all].to_h { |reach| [reach, list(@expressions, joined(reach).columns)] }.freeze
        @page = page_parts.freeze
        @by_ids_sql = by_ids_sql.freeze if adapter.scopes.constant_by_ids?
        @steady = coders.map { |coder| coder unless coder == :datetime }.freeze
        @changing = @steady.each_index.reject { |index| @steady[index] }.freeze
        @kept[node] = self
      end

      # @return [Boolean] whether joins may read paths, so that {#sql} needs the statement's extent
      attr_reader :joinable
      alias joinable? joinable

      # @param extent [Symbol, Integer, nil] which rows the statement reads: :all of the table, at most
      #   that many, or nil if neither is known
      # @param joinable [Boolean] whether a join can be added to the statement
      # @yieldparam list [String] a SELECT list
      # @yieldparam joins [String, nil] the joins that the list needs
      # @yieldreturn [String] the statement with that list
      def sql(extent = FEW, joinable: true, &block)
        reach = @values.empty? ? :none : reach(extent, joinable)
        case reach
        when :none then around(@list || parts(@expressions), &block)
        when :page then around(@page || page_parts, &block)
        else yield(@lists ? @lists[reach] : list(@expressions, joined(reach).columns), joined(reach).text)
        end
      end

      # @param condition [String, nil] an additional SQL condition of this request
      # @return [String] a SELECT by ids, with the ids as one bound value
      def by_ids_sql(condition = nil)
        return @by_ids_sql if @by_ids_sql && condition.nil?

        sql { |list, joins| adapter.scopes.select_by_ids_sql(list, node.definition.id_column, joins, condition) }
      end

      # @return [Boolean] whether {#by_ids_sql} is the same in every request
      def by_ids_kept? = !@by_ids_sql.nil?

      # @return [String] a SELECT of the rows with their parent's key as an additional column, and
      #   the parents' ids as one bound value
      def own_rows_sql(link)
        return @own_rows_sql[link] if @own_rows_sql.key?(link)

        further = column_position(link.parent_column) ? [] : [Association::Correlated.column(link.parent_column)]
        around(parts(@expressions + further)) { |list| link.own_rows_sql(list) }
      end

      # Stores {#own_rows_sql} for later requests.
      # @param link [Link] the stable link to these rows
      def keep_own_rows(link)
        @own_rows_sql = { link => own_rows_sql(link).freeze }.compare_by_identity.freeze
      end

      # @return [Integer] the position of the parent's key in the row
      def key_position(link) = column_position(link.parent_column) || @width

      def in_column(index)
        position = @positions[index].first
        position && Plan::RowSet::InColumn.new(position)
      end

      # @return [Array<Integer>] the positions in the row that the link needs
      def positions(index) = @positions[index]

      # @return [Array<Symbol, nil>] nil for columns that only the ORM can cast
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

      # Not stored for times, because their coder depends on Time.zone.
      def coder(index) = @ends[index].types.coder(node.columns[index].name)

      def expression(column, scopes)
        return Association::Correlated.column(adapter.types.sql(column.name)) if column.own?

        Association::Correlated.path(adapter, column.path, column.name, visible_along(column, scopes))
      end

      def along(column) = @plan_scopes&.along(column)

      def visible_along(column, scopes)
        steps = along(column) or return NOTHING
        steps.map { |definition| definition && scopes&.along(definition, adapter) }
      end

      # Own rows are selected without a resource's scope, so links to scoped resources read pairs instead.
      def own_rows?(edge, models) = !models[edge.node] && edge.relationship.definitions.none?(&:scope)
      def column_position(text) = @expressions.index { |expression| expression.column? && expression.text == text }

      # Without an alias, PostgreSQL would name a subquery's result like the subquery's column, which would
      # hide the row's column of that name in the scope's ORDER BY.
      def listed(expression, index)
        expression.column? ? expression.text : "#{expression.within(adapter.types.qualified(expression.key))} AS castellan_c#{index}"
      end

      def further(expression)
        known = column_position(expression.text) if expression.column?
        return known if known

        @expressions << expression
        @expressions.size - 1
      end

      # Joins may read columns at the end of paths without resource scopes, and ids of has_one links.
      def joined_values
        columns = node.columns.each_with_index.filter_map do |column, index|
          JoinedPaths::Value.new(column.path, adapter.at(column.path).types.sql(column.name), index) unless column.own? || along(column)
        end
        columns + links.each_with_index.filter_map do |link, index|
          JoinedPaths::Value.new([link.association.name], link.related, @positions[index].first) if link && link.kind == :one
        end
      end

      def joined(reach)
        @joined.fetch(reach) do
          @first_rows ||= Hash.new { |found, association| found[association] = JoinedPaths::FirstRows.of(association) }.compare_by_identity
          @joined[reach] = JoinedPaths.new(adapter, @values, @first_rows.method(:[]), reach)
        end
      end

      # @return [Symbol] :unique and :all add joins to the statement; :page
      #   joins its result; :none uses subqueries
      def reach(extent, joinable)
        unique = joinable && joins?(:unique) ? :unique : :none
        return unique if extent.is_a?(Integer) && extent <= FEW

        wide = extent == :all && joinable && joins?(:all) ? :all : :page
        joined(wide).columns.size > joined(:unique).columns.size ? wide : unique
      end

      def joins?(reach)
        columns = joined(reach).columns
        columns.any? && @expressions.each_with_index.none? do |expression, index|
          columns[index].nil? && expression.hides?(adapter.types.table)
        end
      end

      # Joins after the statement's LIMIT, with its rows as `castellan_rows`; the join would lose their order.
      def page_parts
        joined = joined(:page)
        list = outer(@expressions, joined.columns)
        ["WITH castellan_rows AS (SELECT castellan_page.*, row_number() OVER () AS castellan_n FROM (", inner(@expressions),
         ") castellan_page) SELECT #{list} FROM castellan_rows #{joined.text} ORDER BY castellan_rows.castellan_n"]
      end

      def around((before, list, after)) = "#{before}#{yield list}#{after}"

      # A subquery on the same table would capture the row's columns, so the rows then get an alias.
      # @return [Array<String>] the SQL before the statement, the SELECT list, and the SQL after it
      def parts(expressions)
        return ["", list(expressions), ""] if expressions.none? { |expression| expression.hides?(adapter.types.table) }

        ["SELECT #{outer(expressions)} FROM (", inner(expressions), ") castellan_rows"]
      end

      def list(expressions, joined = NONE)
        expressions.each_with_index.map { |expression, index| joined[index] || listed(expression, index) }.join(", ")
      end

      def outer(expressions, joined = NONE)
        expressions.each_with_index.map { |expression, index|
          own = "castellan_rows.castellan_c#{index}"
          joined[index] || (expression.column? ? own : expression.within(own))
        }.join(", ")
      end

      def inner(expressions)
        expressions.each_with_index.map { |expression, index|
          "#{expression.column? ? expression.text : adapter.types.qualified(expression.key)} AS castellan_c#{index}"
        }.join(", ")
      end
    end
  end
end
