# frozen_string_literal: true

module Castellan
  module Rows
    # Holds the state of one run of a plan: the viewer, the tables read so far and the waiting queries.
    #
    #   reading.add(Reading::Query.new(adapter, sql, [1, 2]) { |rows| … })
    #   reading.run    # sends the waiting queries, and those that their blocks add
    # Queries that wait at the same time are independent, so those of one database share a round trip: a
    # document costs one round trip for each level of its include tree. One per request; not thread-safe.
    class Reading
      # @return [Object, nil] the viewer, passed to the blocks that take it
      # @return [ViewerScopes] which rows the viewer may see
      # @return [Hash{Plan::Node => Plan::RowSet::Table}] compared by identity
      attr_reader :viewer, :scopes, :tables

      def initialize(viewer, scopes = ViewerScopes.new(viewer))
        @viewer = viewer
        @scopes = scopes
        @tables = {}.compare_by_identity
        @waiting = []
        @sent = []
        @here = {}.compare_by_identity
      end

      # @param query [Query] to run in {#run}
      # @return [Query]
      def add(query)
        sql = @scopes.filled(query.sql)
        query.sql, query.kept = sql, false unless sql.equal?(query.sql)
        @waiting << query
        query
      end

      # Uses one connection from the first query to the last.
      # @param adapter [Object] the adapter of the session
      # @param session [Object, nil] a session that the caller has opened
      def run(adapter = nil, session = nil)
        return if @waiting.empty?
        return read_waiting if @session

        @first = adapter || @waiting.first.adapter
        @here.clear
        session ? with(session) : @first.session { |leased| with(leased) }
      end

      private

      def with(session)
        @session = session
        read_waiting
      ensure
        @session = nil
      end

      def read_waiting
        until @waiting.empty?
          queries = @waiting
          @waiting = []
          unsent = queries.reject { |query| sent?(query) }
          unsent.all? { |query| here?(query.adapter) } ? @session.read(unsent) : read_apart(unsent)
          queries.each(&:deliver)
        end
      end

      # Paths that lead to the same records, such as `author` and `comments.author`, send one statement.
      def sent?(query)
        return false unless query.ids

        query.same = @sent.find { |sent| sent.same?(query) }
        @sent << query unless query.same
        !query.same.nil?
      end

      def read_apart(queries)
        here, elsewhere = queries.partition { |query| here?(query.adapter) }
        @session.read(here)
        elsewhere.each { |query| query.adapter.session { |session| session.read([query]) } }
      end

      # Memoized, because a model searches all superclasses for its connection's name.
      def here?(adapter)
        @here.fetch(adapter) { @here[adapter] = adapter.equal?(@first) || @first.same_database?(adapter) }
      end

      # Represents one SELECT and the block that receives its rows.
      #
      # `rows` are arrays or a PG::Result, nil until the SELECT has run, or if another query is the `same`. `ids` is bound to the SQL's only
      # placeholder. `kept` is true for SQL that repeats; `indexed` means that an index finds the rows.
      Query = Struct.new(:adapter, :sql, :ids, :kept, :indexed, :rows, :receive, :same) do
        def initialize(adapter, sql, ids, kept = false, indexed = false, &receive) # rubocop:disable Style/OptionalBooleanParameter -- a Hash less
          super(adapter, kept && ids&.size == 1 ? adapter.dialect.single(sql) : sql, ids, kept, indexed, nil, receive)
        end

        # @return [Boolean] whether the other query has the same rows
        def same?(other) = sql == other.sql && ids == other.ids && adapter.equal?(other.adapter)

        def deliver = receive&.call(same ? same.rows : rows)

        # Makes the query ignore its rows.
        def discard = self.receive = nil
      end
    end
  end
end
