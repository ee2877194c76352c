# frozen_string_literal: true

module Castellan
  module Rows
    # Holds the state of one run of a plan: the viewer, the tables read so far and the waiting queries.
    #
    #   reading.add(Reading::Query.new(adapter, sql, [1, 2]) { |rows| … })
    #   reading.run    # sends the waiting queries, and those that their blocks add
    #
    # Queries that wait at the same time are independent, so those of one database share a round trip: a
    # document costs one round trip for each level of its include tree. One for each request; not thread-safe.
    class Reading
      # @return [Object, nil] the viewer, passed to the blocks that take it
      # @return [ViewerScopes] which rows this viewer may see
      # @return [Hash{Plan::Node => Plan::RowSet::Table}] by identity
      attr_reader :viewer, :scopes, :tables

      def initialize(viewer, scopes = ViewerScopes.new(viewer))
        @viewer = viewer
        @scopes = scopes
        @tables = {}.compare_by_identity
        @waiting = []
        @here = {}.compare_by_identity
      end

      # @param query [Query] runs in {#run}
      # @return [Query]
      def add(query)
        @waiting << query
        query
      end

      # Holds one connection from the first query to the last.
      # @param adapter [Object] the adapter of the session
      # @param session [Object, nil] a session that the caller holds
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
          queries.all? { |query| here?(query.adapter) } ? @session.read(queries) : read_apart(queries)
          queries.each(&:deliver)
        end
      end

      def read_apart(queries)
        here, elsewhere = queries.partition { |query| here?(query.adapter) }
        @session.read(here)
        elsewhere.each { |query| query.adapter.session { |session| session.read([query]) } }
      end

      # Memoized, because a model looks for its connection's name in every superclass.
      def here?(adapter)
        @here.fetch(adapter) { @here[adapter] = adapter.equal?(@first) || @first.same_database?(adapter) }
      end

      # One SELECT that a {Reading} sends, and the block that receives its rows: arrays or a PG::Result, nil until it has run. `ids` are
      # those of the SQL's one placeholder; `kept` is true for SQL that repeats, `indexed` where an index finds the rows of one id.
      Query = Struct.new(:adapter, :sql, :ids, :kept, :indexed, :rows, :receive) do
        def initialize(adapter, sql, ids, kept = false, indexed = false, &receive) # rubocop:disable Style/OptionalBooleanParameter -- a Hash less
          super(adapter, kept && ids&.size == 1 ? adapter.dialect.single(sql) : sql, ids, kept, indexed, nil, receive)
        end

        # Calls the block with the rows.
        def deliver = receive&.call(rows)

        # Discards the block, so that the rows are ignored.
        def discard = self.receive = nil
      end
    end
  end
end
