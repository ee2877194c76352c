# frozen_string_literal: true

module Castellan
  module Rows
    # A scope in batches, for documents too long to be read at once.
    #
    #   Batches.new(adapter, User.where(active: true), :id, 1_000).each { |scope| Batches::End.of(adapter.fetch(plan, scope).tables[0].rows) }
    #
    # A scope in the order of its primary key, or in none, goes on after the last key of each batch (a keyset: no row is skipped or
    # counted again, however far it is). One in another order, or with a limit, is read as ids first and then by these, in its order.
    class Batches
      # Where a batch ended: how many rows it had, and the driver's id of the last.
      End = Struct.new(:count, :id) do
        # @param rows [Array<Array>, PG::Result] the id is the first column
        # @return [End]
        def self.of(rows)
          return new(rows.size, rows.last&.first) if rows.is_a?(Array)

          new(rows.ntuples, rows.ntuples.zero? ? nil : rows.getvalue(rows.ntuples - 1, 0))
        end
      end

      # @param adapter [Object]
      # @param scope [Object] a relation or dataset of the adapter
      # @param column [Symbol] the id of the resource
      # @param size [Integer] of a batch
      def initialize(adapter, scope, column, size)
        @adapter = adapter
        @scope = scope
        @column = column
        @size = size
        @division = adapter.division
      end

      # @return [Boolean] whether a part of the scope's rows is found by their ids
      def possible?
        return false unless @division && @column == @adapter.primary_key && @adapter.scope?(@scope)

        @division.apart { @division.possible?(@scope) }
      end

      # @yieldparam scope [Object] of the next batch
      # @yieldreturn [End, nil] where it ended; nil: no further batch is wanted
      def each(&block)
        direction = @division.key_order(@scope)
        direction ? by_key(direction, &block) : listed(&block)
      end

      private

      # What only puts a statement together may lease a connection as well (ActiveRecord before 7.2).
      def by_key(direction)
        batch = scope = @division.apart { @adapter.page(@adapter.order(@scope, [[@column, direction]]), limit: @size, offset: nil) }
        loop do
          ended = yield batch
          break if ended.nil? || ended.count < @size

          batch = @division.apart { @division.after(scope, @adapter.cast(@column, ended.id), direction) }
        end
      end

      def listed
        unlimited = @division.unlimited(@scope)
        @division.apart { ids }.each_slice(@size) do |some|
          yield(@division.apart { @adapter.by_ids(unlimited, some, @column) }) || break
        end
      end

      def ids
        statement = @adapter.select_sql(@scope, @adapter.qualified(@column))
        @adapter.session { |session| session.ids(session.rows(statement), 0) }
      end
    end
  end
end
