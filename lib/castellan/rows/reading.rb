# frozen_string_literal: true

module Castellan
  module Rows
    # What one run of a plan has read so far, and for whom; and what is to be read next. Of one request and one thread.
    #
    #   reading.ask(Query.new(adapter, sql, [1, 2]) { |rows, session| … })
    #   reading.run    # sends what was asked, and what is asked meanwhile
    #
    # SELECTs that wait at the same time need nothing of each other, so those of one database go to it together: a document costs as many
    # round trips as its include is deep, however many relationships there are.
    class Reading
      # @return [Object, nil] given to the blocks that take it
      # @return [ViewerScopes] what this viewer may see
      # @return [Hash{Plan::Node => Plan::RowSet::Table}] by identity
      attr_reader :viewer, :scopes, :tables

      def initialize(viewer, scopes = ViewerScopes.new(viewer))
        @viewer = viewer
        @scopes = scopes
        @tables = {}.compare_by_identity
        @asked = []
        @here = {}.compare_by_identity
      end

      # @param query [Query] answered by {#run}
      # @return [Query]
      def ask(query)
        @asked << query
        query
      end

      # One connection is held from the first answer to the last.
      def run
        return if @asked.empty?
        return answer if @session

        @lead = @asked.first.adapter
        @here.clear
        @lead.session do |session|
          @session = session
          answer
        ensure
          @session = nil
        end
      end

      private

      def answer
        until @asked.empty?
          asked = @asked
          @asked = []
          asked.all? { |query| here?(query.adapter) } ? @session.answer(asked) : apart(asked)
          asked.each(&:use)
        end
      end

      def apart(asked)
        here, elsewhere = asked.partition { |query| here?(query.adapter) }
        @session.answer(here)
        elsewhere.each { |query| query.adapter.session { |session| session.answer([query]) } }
      end

      # Asked once of each adapter: models look for the name of their connection in every superclass.
      def here?(adapter)
        @here.fetch(adapter) { @here[adapter] = adapter.equal?(@lead) || @lead.shares?(adapter) }
      end
    end
  end
end
