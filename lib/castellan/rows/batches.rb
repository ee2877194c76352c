# frozen_string_literal: true

module Castellan
  module Rows
    # Splits a scope into batches, for documents that are too long to read at once.
    #
    #   Batches.new(adapter, User.where(active: true), :id, 1_000)
    #     .each { |scope| Batches::End.of(adapter.fetch(plan, scope).tables[0].rows) }
    #
    # A scope without an order, or ordered by primary key, is read with keyset pagination. For another order
    # or a limit, all ids are read first, then the rows by id, in order.
    class Batches
      # Describes the end of a batch: the number of its rows, and the driver's id of the last row.
      End = Struct.new(:count, :id) do
        # @param rows [Array<Array>, PG::Result] rows with the id in the first column
        def self.of(rows)
          return new(rows.size, rows.last&.first) if rows.is_a?(Array)

          new(rows.ntuples, rows.ntuples.zero? ? nil : rows.getvalue(rows.ntuples - 1, 0))
        end
      end

      def initialize(adapter, scope, column, size)
        @adapter = adapter
        @scope = scope
        @column = column
        @size = size
      end

      # @return [Boolean] whether the scope can be split by ids; false if its records must be loaded
      def possible?
        scopes.own?(@scope) && @column == @adapter.primary_key && @adapter.apart { scopes.reason(@scope).nil? }
      end

      # @yieldparam scope [Object] the relation or dataset of the next batch
      # @yieldreturn [End, nil] the end of the batch; nil stops
      def each(&block)
        direction = scopes.key_order(@scope)
        direction ? by_key(direction, &block) : listed(&block)
      end

      private

      def scopes = @adapter.scopes

      # Building a relation may lease a connection too (ActiveRecord before 7.2).
      def by_key(direction)
        batch = scope = @adapter.apart { scopes.page(scopes.order(@scope, [[@column, direction]]), limit: @size, offset: nil) }
        loop do
          ended = yield batch
          break if ended.nil? || ended.count < @size

          batch = @adapter.apart { scopes.after(scope, @adapter.types.cast(@column, ended.id), direction) }
        end
      end

      def listed
        unlimited = scopes.unlimited(@scope)
        @adapter.apart { scopes.ids(@scope, @column) }.each_slice(@size) do |some|
          yield(@adapter.apart { scopes.by_ids(unlimited, some, @column) }) || break
        end
      end
    end
  end
end
