# frozen_string_literal: true

module Castellan
  module Rows
    # The members that only Ruby can write: blocks of named columns, blocks of the record, and columns whose value the ORM's
    # type has to read first. JSON text for each row, column by column.
    #
    #   ComputedMembers.new(reader, rows, session, scope).to_h   # => { 2 => ['"Ada Lovelace"', '"Alan Turing"'] }
    #
    # A block sees a small row, not the record: it answers the columns that the attribute named.
    class ComputedMembers
      ROWS = {} # rubocop:disable Style/MutableConstant
      LOCK = Mutex.new
      private_constant :ROWS, :LOCK

      # @return [Array<Symbol, nil>] the coders of the node's columns, nil where the members are computed
      attr_reader :coders

      def initialize(reader, rows, session, scope)
        @reader = reader
        @rows = rows
        @session = session
        @scope = scope
        @coders = reader.coders
      end

      # @return [Hash{Integer => Array<String>}] position in node.members → one JSON text a row
      def to_h
        node.members.each_with_index.each_with_object({}) do |(member, index), computed|
          values = values_of(member)
          computed[index] = values.map { |value| json(value) } if values
        end
      end

      private

      def node
        @reader.node
      end

      def adapter
        @reader.adapter
      end

      def values_of(member)
        case member.attribute.source
        when :computed then computed(member)
        when :record then records(member.attribute)
        when :column, :path then cast(member) unless member.positions.all? { |position| coders[position] }
        end
      end

      def cast(member)
        column = node.columns[member.positions.first]
        return read_by_model(column.name) if column.own? && adapter.needs_record?(column.name)

        column_values(member.positions.first)
      end

      def column_values(position)
        column = node.columns[position]
        at = adapter.at(column.path)
        @session.column(@rows, position).map { |value| at.cast(column.name, value) }
      end

      def computed(member)
        row = row_class(member.attribute.columns)
        columns = member.positions.map { |position| column_values(position) }
        Array.new(columns.first.size) { |index| member.attribute.block.call(row.new(*columns.map { |column| column[index] })) }
      end

      # Few and fixed: the lists of columns that declarations name.
      def row_class(columns)
        LOCK.synchronize { ROWS[columns] ||= Struct.new(*columns) }
      end

      def records(attribute)
        each_record { |record| attribute.block.call(record) }
      end

      def read_by_model(name)
        each_record { |record| record.public_send(name) }
      end

      def each_record
        found = loaded_records
        ids.map { |id| yield found.fetch(id) { gone(id) } }
      end

      def gone(id)
        raise Error, "#{node.definition.type} #{id} was deleted while the document was written; ask again, or read it in a transaction " \
                     "with isolation: :repeatable_read"
      end

      def ids
        @ids ||= column_values(0)
      end

      def loaded_records
        @loaded_records ||= adapter.records(node.definition.model, @scope, ids, node.definition.id_column)
      end

      def json(value)
        adapter.json(value)
      end
    end
  end
end
