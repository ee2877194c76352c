# frozen_string_literal: true

module Castellan
  module Rows
    # Runs a plan: reads the primary rows, then the related rows level by level.
    #
    #   Reader.new(plan, adapter).call(User.where(active: true))                  # => RowSet
    #   Reader.new(plan, adapter).call(Records.new([ada, alan]), viewer: alan)    # => RowSet
    #
    # Reads each related record once, however many parents it has. Loads types that rows cannot read (see
    # {ModelReasons}) through models, in one statement. Frozen, one per plan.
    class Reader
      # Delays building a page's relation, because most requests repeat a page whose SQL is known.
      #
      #   page = Page.new([*scopes.bound(scope), request.sort, request.page], -> { scopes.page(…) })
      #   page.key        # pages with equal keys have the same SQL
      #   page.relation   # => the relation or dataset
      #
      # Building the relation and its SQL costs more than sending the statement.
      Page = Struct.new(:key, :build) do
        # @return [Object]
        def relation
          @relation ||= build.call
        end
      end

      # Lists the rows on a page of several tables, in its order: id and type position of each.
      Places = Struct.new(:places)

      # SQL of the primary rows, whether it reads the whole table and the
      # links separately, and the NodeReader.
      Statement = Struct.new(:sql, :whole, :reader)
      NOTHING = [].freeze
      NONE = {}.freeze
      # A default scope with the current tenant has other SQL for each of them.
      MOST_READERS = 16
      private_constant :Statement, :NOTHING, :NONE, :MOST_READERS

      # @param now [Array<Association>, nil] those whose SQL is kept as it is in this request, see {#now}
      # @param scopes [ViewerScopes, nil] of a viewer of whom the same scopes hide rows as of all that this reader is for
      def initialize(plan, adapter, now = nil, scopes = nil)
        @now = now || NOTHING
        @plan = plan
        @adapter = adapter
        @adapters = {}.compare_by_identity
        @models = {}.compare_by_identity
        @scopes = PlanScopes.of(plan, adapter)
        @scoped = @scopes.any?
        @along = @scopes.along_paths?
        place(plan.root, adapter)
        @changing = now ? NOTHING : @adapters.flat_map { |node, own| changing(node, own) }.uniq.freeze
        @met = BoundedCache.new(limit: MOST_READERS)
        @present = BoundedCache.new(limit: MOST_READERS)
        @kept = {}.compare_by_identity
        rows = plan.nodes.reject { |node| @models[node] }
        rows.reverse_each { |node| NodeReader.new(node, @adapters.fetch(node), @kept, @models, @scopes, scopes).keep(@now) }
        @kept.freeze
        @parts = BoundedCache.new
        @alone = alone
        @statements = BoundedCache.new if @kept[plan.root]
        @whole = whole_reader(scopes)
        freeze
      end

      # @param scope [Object] the caller's relation or dataset, {Ids::Chosen}, {Page} or {Records}
      # @param viewer [Object, nil] passed to the blocks that take it
      # @param scopes [ViewerScopes] which rows the viewer may see
      # @param beside [Reading::Query, nil] a query for the same round trip; it
      #   runs only if `scope` needs a SELECT
      # @return [Plan::RowSet]
      def call(scope, viewer: nil, scopes: ViewerScopes.new(viewer), beside: nil)
        return by_ids_alone(scope.ids, viewer) if @alone && chosen?(scope) && !scope.ids.empty?

        @scopes.call(scopes) if @scoped
        statement = @statements[scope.key] if @statements && scope.is_a?(Page)
        reading = Reading.new(viewer, scopes)
        if statement.nil? && given?(scope) then given(scope, reading)
        else by_statement(scope, reading, beside, statement)
        end
        Plan::RowSet.new(reading.tables.values_at(*@plan.nodes))
      end

      # Evaluating a scope costs less than building its SQL. A reader costs more, so the scopes must have been the same before.
      # @param scopes [ViewerScopes]
      # @return [Reader] the one that keeps the SQL of all scopes as they are in this request
      def now(scopes)
        return self if @changing.empty? && !@along

        identities = @changing.map(&:identity)
        return self if identities.none? && !@along

        key = [identities, @scopes.hiding(scopes)]
        @present[key] || (@met[key] && keep(key, scopes)) || @met.fetch(key) { self }
      end

      def adapter_of(node)
        @adapters.fetch(node)
      end

      # Reads the records of a node.
      # @param records [Array<Object>] without duplicates
      # @return [Plan::RowSet::Table]
      def records(node, records, reading)
        adapter_of(node).instances.preload(records, preloads(node))
        reading.tables[node] = Together.render do
          Together.current&.add(records)
          RecordReader.new(self, node, records, reading).table
        end
      end

      # Queues the query for a node's rows by ids, or loads the records if rows are not sufficient.
      # @yieldparam table [Plan::RowSet::Table] the table, once its rows were read
      def by_ids(node, ids, reading, &found)
        return by_records(node, ids, reading, &found) if @models[node]

        reader = reader(node, reading)
        return fill(reader, NOTHING, reading, &found) if ids.empty?

        linkage = linkage(reader, reading)
        condition = condition(node, reading)
        sql = reader.by_ids_sql(condition)
        reading.add(Reading::Query.new(reader.adapter, sql, ids, condition.nil? && reader.by_ids_kept?, reader.by_key?) { |rows|
          fill(reader, rows, reading, linkage, &found)
        })
        linkage.prefetch(ids) if reader.by_key? && reader.selects? && reader.adapter.dialect.overlaps?
      end

      # Queues the related rows of a polymorphic relationship.
      # @param found [Array<Array(Object, Object, Integer)>] parent id, related id and type position
      # @return [Plan::RowSet::Pairs]
      def of_several_types(edge, found, reading)
        edge.alternatives.each_with_index do |node, kind|
          next unless node

          ids = key_values(node, found.filter_map { |_, id, other| id if other == kind }.uniq)
          by_ids(node, ids, reading) { |table|
            Linkage.reject_missing!(found, kind, table.rows) if ColumnValues.count(table.rows) != ids.size
          }
        end
        Plan::RowSet::Pairs.new(found, 0, 1, 2)
      end

      # Reads columns and links that records have not loaded, by ids, in one statement.
      # @param columns [Array<Integer>] positions in node.columns
      # @param edges [Array<Integer>] positions in node.edges
      # @yieldparam links [Array<Object>] see {Plan::RowSet::Table}
      # @yieldparam coders [Array<Symbol, nil>]
      def part(node, columns, edges, ids, reading)
        reader = @parts.fetch([node.object_id, columns, edges]) { kept_part(node, columns, edges) } ||
                 part_reader(node, columns, edges, @kept, reading)
        rows = NOTHING
        query = Reading::Query.new(reader.adapter, reader.by_ids_sql, ids, reader.by_ids_kept?, reader.by_key?) { |found| rows = found }
        reading.add(query) unless ids.empty?
        reading.run
        links = links(reader, rows, reading)
        reading.run
        yield rows, links, reader.coders
      end

      def reader(node, reading)
        @kept[node] || NodeReader.new(node, @adapters.fetch(node), @kept, @models, @scopes, reading.scopes)
      end

      # @return [Array<Resource::Definition, nil>, nil] see {PlanScopes#along}
      def along(column)
        @scopes.along(column)
      end

      # @return [Boolean] whether the SQL of the node or edge is the same in every request
      def kept?(part)
        @kept.key?(part)
      end

      # Builds the table of the rows, and queues the queries for their links and related rows.
      # @yieldparam table [Plan::RowSet::Table]
      def fill(reader, rows, reading, linkage = linkage(reader, reading))
        table = reading.tables[reader.node] = table(reader, rows, reading.viewer)
        yield table if block_given?
        table.links = linkage.of(rows) if linkage
      end

      private

      # @return [Reader, nil] nil if the scopes have changed meanwhile
      def keep(key, scopes)
        identities = key.first
        known = @changing.zip(identities).filter_map { |association, identity| association if identity }
        @present.fetch(key) do
          found = Reader.new(@plan, @adapter, known, (scopes if @along))
          found if identities == @changing.map(&:identity)
        end
      end

      def table(reader, rows, viewer)
        coders = reader.coders
        members = ComputedMembers.new(reader, coders, rows, viewer) if reader.computes? || coders.include?(nil)
        retype = members || ->(index) { ComputedMembers.new(reader, coders, rows, viewer).retyped(index) }
        Plan::RowSet::Table.new(node: reader.node, rows: rows, coders: coders, links: NOTHING, computed: members ? members.to_h : NONE,
                                asides: members&.asides, retype: retype)
      end

      # @return [NodeReader, nil] nil if its SQL is not the same in every request
      def kept_part(node, columns, edges)
        kept = @kept.dup
        reader = part_reader(node, columns, edges, kept)
        reader.keep(@now)
        reader if kept.key?(reader.node)
      end

      def part_reader(node, columns, edges, kept, reading = nil)
        part = Plan::Node.new(definition: node.definition, path: node.path, members: [], edges: node.edges.values_at(*edges),
                              columns: node.columns.values_at(0, *columns))
        NodeReader.new(part, adapter_of(node), kept, @models, @scopes, reading&.scopes)
      end

      def alone
        reader = @kept[@plan.root]
        reader if reader&.by_ids_kept? && @plan.nodes.one? && reader.links.empty? && !@scoped
      end

      # On SQLite, one scan per relationship reads the links of a whole
      # table, instead of a subquery for each row.
      def whole_reader(scopes)
        root = @plan.root
        grouped = @kept[root] ? root.edges.select { |edge| @kept[edge]&.kind == :grouped } : []
        return if grouped.empty?

        kept = @kept.dup
        grouped.each { |edge| kept.delete(edge) }
        NodeReader.new(root, @adapter, kept, @models, @scopes, scopes, whole: true).tap { |reader| reader.keep(@now) }
      end

      def by_ids_alone(ids, viewer)
        @adapter.session do |session|
          sql = @alone.by_ids_sql
          rows = session.rows(ids.size == 1 ? @adapter.dialect.single(sql) : sql, ids, kept: true, indexed: @alone.by_key?)
          Plan::RowSet.new([table(@alone, rows, viewer)])
        end
      end

      def linkage(reader, reading)
        Linkage.new(self, reader, reading) unless reader.links.empty?
      end

      def links(reader, rows, reading)
        linkage = linkage(reader, reading)
        linkage ? linkage.of(rows) : NOTHING
      end

      # Related ids of several types are read from one column, which may be a string.
      def key_values(node, ids)
        adapter_of(node).types.integer?(node.definition.id_column) ? Ids.integers(ids) : ids.map(&:to_s)
      end

      def place(node, adapter)
        @adapters[node] = adapter
        @models[node] = true unless !node.definition.several_tables? && adapter.model && ModelReasons.of(node, adapter).empty?
        node.edges.each { |edge| edge.nodes.each { |below| place(below, Rows.related(adapter, edge.relationship, below.definition)) } }
      end

      # @return [Array<Association>] those that the node's rows are read with, and whose scopes are evaluated in every request
      def changing(node, adapter)
        return NOTHING if adapter.model.nil?

        edges = node.edges.select { |edge| edge.data && !edge.alternatives && !edge.relationship.itself? && !edge.relationship.block }
        paths = node.columns.map(&:path).reject { |path| ModelReasons.broken_path(adapter, path) }
        found = edges.filter_map { |edge| adapter.association(edge.relationship.association_name) }
        (found + paths.flat_map { |path| adapter.along(path) }).reject { |association| association.reason || association.stable? }
      end

      def chosen?(scope)
        scope.is_a?(Ids::Chosen) && scope.column == @plan.root.definition.id_column
      end

      def given?(scope)
        scope.is_a?(Records) || scope.is_a?(Places) || chosen?(scope) || @models[@plan.root] ||
          @adapter.scopes.reason(scope.is_a?(Page) ? scope.relation : scope)
      end

      def given(scope, reading)
        root = @plan.root
        if scope.is_a?(Records) then records(root, scope.to_a, reading)
        elsif scope.is_a?(Places) then of_several_tables(root, scope.places, reading)
        elsif chosen?(scope) then by_ids(root, scope.ids, reading)
        else records(root, @adapter.scopes.load(relation(scope)), reading)
        end
        reading.run
      end

      # Rows of two tables may have the same id, so each place on the page
      # gets a number that links to its row.
      def of_several_tables(root, places, reading)
        numbered = places.each_with_index.map { |(id, kind), number| [number, id, kind] }
        rows = numbered.map { |number,| [number] }
        links = [of_several_types(root.edges.first, numbered, reading)]
        reading.tables[root] = Plan::RowSet::Table.new(node: root, rows: rows, coders: [:integer], links: links, computed: NONE)
      end

      # Leases one connection before generating the SQL: returning it to the pool in
      # between costs as much as a short SELECT.
      def by_statement(scope, reading, beside, statement)
        @adapter.session do |session|
          statement ||= statement(scope, reading)
          reader = statement.reader
          linkage = linkage(reader, reading) if reader.links.any?
          sql = @along ? reading.scopes.filled(statement.sql) : statement.sql
          next fill(reader, session.rows(sql, nil, kept: true), reading) unless linkage || beside

          reading.add(Reading::Query.new(@adapter, sql, nil, true) { |rows| fill(reader, rows, reading, linkage) })
          reading.add(beside) if beside
          linkage.prefetch_whole if statement.whole
          reading.run(@adapter, session)
        end
      end

      def statement(scope, reading)
        return build(relation(scope), reading) unless @statements && scope.is_a?(Page) && Scopes::Identity.small?(scope.key)

        @statements.fetch(scope.key) { build(scope.relation, reading) }
      end

      def build(scope, reading)
        scopes = @adapter.scopes
        reader = @kept[@plan.root] || reader(@plan.root, reading)
        extent = scopes.extent(scope) if reader.joinable? || reader.selects? || @whole
        reader = @whole if @whole && extent == :all
        joinable = reader.joinable? && scopes.joinable?(scope)
        sql = reader.sql(extent, joinable: joinable) { |list, joins| scopes.select_sql(scope, list, joins) }
        Statement.new(sql.freeze, extent == :all && reader.selects?, reader).freeze
      end

      def relation(scope)
        scope.is_a?(Page) || scope.is_a?(Ids::Chosen) ? scope.relation : scope
      end

      def by_records(node, ids, reading)
        found = ids.empty? ? ids : adapter_of(node).scopes.load_by_ids(ids, node.definition.id_column, condition(node, reading))
        table = records(node, found, reading)
        yield table if block_given?
      end

      def condition(node, reading)
        reading.scopes.of(node.definition, adapter_of(node))&.condition
      end

      def preloads(node)
        node.members.flat_map { |member| member.attribute.preloads }.uniq
      end
    end
  end
end
