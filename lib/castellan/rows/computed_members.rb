# frozen_string_literal: true

module Castellan
  module Rows
    # Computes members in Ruby: blocks of named columns, and columns that the ORM's type must cast.
    #
    #   ComputedMembers.new(reader, reader.coders, rows, session, viewer).to_h   # => { 2 => ['"Ada Lovelace"', '"Alan Turing"'] }
    #
    # Blocks receive a {BlockRow} with the declared columns, not the record.
    class ComputedMembers
      # @param coders [Array<Symbol, nil>] the coders of the node's columns, nil for those that the ORM casts
      def initialize(reader, coders, rows, session, viewer)
        @reader = reader
        @coders = coders
        @rows = rows
        @session = session
        @viewer = viewer
      end

      # @return [Hash{Integer => Array<String>}] JSON texts, one for each row, by position in node.members
      def to_h
        node.members.each_with_index.each_with_object({}) do |(member, index), computed|
          values = values_of(member)
          computed[index] = JSONValue.texts(values, adapter, node, member.attribute.key) { |row| ids[row] } if values
        end
      end

      # @param index [Integer] a member whose coder cannot write one of the values
      # @return [Array<String>, nil] the values cast by the ORM's type, as JSON texts; nil if it fails too
      def retyped(index)
        member = node.members[index]
        JSONValue.texts(column_values(member.positions.first), adapter, node, member.attribute.key) { |row| ids[row] }
      rescue StandardError
        nil # the coder's error names the value
      end
      alias call retyped

      # @return [Plan::RowSet::Asides, nil]
      def asides
        return if node.asides.empty?

        RowExtras.of(node, adapter, -> { ids }) { |aside| computed(aside.computed, aside.positions) }
      end

      private

      def node
        @reader.node
      end

      def adapter
        @reader.adapter
      end

      def ids
        @session.column(@rows, 0)
      end

      def values_of(member)
        case member.attribute.source
        when :computed then computed(member.attribute, member.positions)
        when :column, :path then column_values(member.positions.first) unless @coders[member.positions.first]
        end
      end

      def computed(computed, positions)
        rows = Blocks.rows(computed.columns, positions.map { |position| column_values(position) }, @session.count(@rows))
        rows.map(&Blocks.bound(computed.block, @viewer))
      end

      def column_values(position)
        column = node.columns[position]
        at = adapter.at(column.path)
        @session.column(@rows, position).map { |value| at.types.cast(column.name, value) }
      end
    end
  end
end
