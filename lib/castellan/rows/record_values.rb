# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the values of one node's members from records.
    #
    #   values = RecordValues.new(node, adapter, [ada, alan], reading)
    #   values.ids             # => [1, 2]
    #   values.read(:email)    # => ["ada@example.com", …]
    #   values.computed(attribute)   # => the results of the attribute's block
    class RecordValues
      def initialize(node, adapter, records, reading)
        @node = node
        @adapter = adapter
        @instances = adapter.instances
        @records = records
        @viewer = reading.viewer
        @scopes = reading.scopes
        @read = {}
        @uniform = @instances.uniform?(records)
      end

      # @return [Array<Object>]
      def ids
        @ids ||= (one_column(@node.definition.id_column) || [RecordIds.of(@instances, @records, @node.definition.id_column)]).first
      end

      # @param name [Symbol] a column, or any public reader
      # @return [Array<Object>] one value for each record
      def read(name)
        @read[name] ||= @instances.read(@records, name)
      end

      # @param name [Symbol] a column
      # @param as_stored [Boolean] whether the model's readers are ignored
      # @return [Array(Array<Object>, Symbol)] the values and their coder; nil if each must be encoded as JSON
      def column(name, as_stored: false)
        values = @instances.stored(@records, name) if as_stored
        return [values, RubyValues.coder(values)] if values

        one_column(name) || [read(name), RubyValues.coder(read(name))]
      end

      # @param computed [#block, #columns] a computed member; without columns its block takes the record
      # @return [Array<Object>] the block's result for each record
      def computed(computed)
        block = Blocks.bound(computed.block, @viewer)
        return @records.map(&block) unless computed.columns

        BlockRow.each(computed.columns, computed.columns.map { |name| read(name) }, @records.size).map(&block)
      end

      # @param path [Array<Symbol>] to-one associations
      # @param load [Boolean] whether to load associations that are not loaded
      # @param along [Array<Resource::Definition, nil>, nil] the scoped resource of each step
      # @return [Array<Object>, nil] the values at the path's end; nil if an association is not loaded
      def walk(path, name, load: false, as_stored: false, along: nil)
        ends = path.zip(along || []).reduce(@records) do |level, (association, definition)|
          level && step(level, association, definition, load)
        end
        ends&.map { |record| record && @instances.public_send(as_stored ? :stored : :read, [record], name).first }
      end

      private

      def one_column(name)
        @instances.column(@records, name) if @uniform && name.is_a?(Symbol)
      end

      def step(level, association, definition, load)
        missing = level.compact.reject { |record| @instances.loaded?(record, association) }
        return unless missing.empty? || load

        @instances.preload_where_same(missing, association) if missing.any?
        found = level.map { |record| record && @instances.related(record, association).first }
        definition ? @scopes.visible_records(definition, @adapter, found) : found
      end
    end
  end
end
