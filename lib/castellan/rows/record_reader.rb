# frozen_string_literal: true

module Castellan
  module Rows
    # Reads one node from records: attributes through their readers, and loaded associations.
    # Columns and links that are not loaded are read as rows, in one statement for all records.
    #
    #   RecordReader.new(reader, node, [ada, alan], reading).table   # => Plan::RowSet::Table
    class RecordReader
      # @param reader [Reader] the plan's reader
      def initialize(reader, node, records, reading)
        @reader = reader
        @node = node
        @adapter = reader.adapter_of(node)
        @instances = @adapter.instances
        @records = records
        @reading = reading
        @values = RecordValues.new(node, @adapter, records, reading)
        @columns = Array.new(node.columns.size)
        @coders = Array.new(node.columns.size)
        @computed = {}
        @asked = []
        @retyped = {}
      end

      # @return [Plan::RowSet::Table]
      def table
        read_members
        links = RecordLinks.new(@reader, @node, @records, @values.ids, @reading).to_a
        ask(links) if @asked.any? || unread(links).any?
        Plan::RowSet::Table.new(node: @node, rows: rows, coders: @coders, links: links, computed: @computed, asides: asides,
                                retype: method(:retyped))
      end

      private

      # (see ComputedMembers#retyped)
      def retyped(index)
        member = @node.members[index]
        attribute = member.attribute
        position = member.positions.first
        values = @retyped[position]&.call || walk(attribute, position)
        JSONTexts.of(values, @adapter, @node, attribute.key) { |row| @values.ids[row] } if values
      rescue StandardError
        nil # the coder's error names the value
      end

      def asides
        Asides.of(@node, @adapter, -> { @values.ids }) { |aside| @values.computed(aside.computed) }
      end

      def read_members
        fill(0, @values.ids, RubyValues.coder(@values.ids) || :text)
        @node.members.each_with_index { |member, index| member(member.attribute, member.positions.first, index) }
      end

      def member(attribute, position, index)
        case attribute.source
        when :computed, :record then compute(index, @values.computed(attribute))
        when :column then column(attribute, position, index)
        when :path then path(attribute, position, index)
        end
      end

      def column(attribute, position, index)
        values, coder = @values.column(attribute.columns.first, as_stored: attribute.as_stored)
        coder ? fill(position, values, coder) : compute(index, values)
      end

      def path(attribute, position, index)
        values = walk(attribute, position, load: !rows?(attribute))
        return @asked << [position, index] unless values

        coder = RubyValues.coder(values)
        coder ? fill(position, values, coder) : compute(index, values)
      end

      def walk(attribute, position, load: false)
        @values.walk(attribute.path, attribute.columns.first, load: load, as_stored: attribute.as_stored,
                                                              along: @reader.along(@node.columns[position]))
      end

      # Whether an unloaded path can be read as rows.
      def rows?(attribute)
        !@adapter.model.nil? && @node.definition.id_column.is_a?(Symbol) && @instances.stored?(@records) &&
          ModelReasons.of_path(@adapter, attribute.path, attribute.columns.first, as_stored: attribute.as_stored).nil?
      end

      def fill(position, values, coder)
        @columns[position] = values
        @coders[position] = coder
      end

      def compute(index, values)
        @computed[index] = JSONTexts.of(values, @adapter, @node, @node.members[index].attribute.key) { |row| @values.ids[row] }
      end

      def rows
        return [] if @records.empty?

        nothing = Array.new(@records.size)
        @columns.map { |values| values || nothing }.transpose
      end

      def unread(links)
        @node.edges.each_index.select { |index| links[index].nil? && @node.edges[index].data }
      end

      # Reads by ids what is not loaded: columns at the end of paths, and links.
      def ask(links)
        unread = unread(links)
        edges = @node.edges.values_at(*unread)
        part = Plan::Node.new(definition: @node.definition, path: @node.path, members: [], edges: edges,
                              columns: [@node.columns.first, *@asked.map { |position, _| @node.columns[position] }])
        @reader.part(part, @adapter, @values.ids.uniq, @reading) do |rows, found, coders|
          take_columns(rows, coders)
          found = found.map { |link| link.is_a?(Plan::RowSet::InColumn) ? in_column(link, rows) : link }
          unread.each { |index| links[index] = found.shift }
        end
      end

      def take_columns(rows, coders)
        @asked.each.with_index(1) do |(position, index), asked|
          values = aligned(rows, asked)
          next compute(index, typed(position, values)) unless coders[asked]

          fill(position, values, coders[asked])
          @retyped[position] = -> { typed(position, values) }
        end
      end

      def typed(position, values)
        column = @node.columns[position]
        at = @adapter.at(column.path)
        values.map { |value| at.cast(column.name, value) }
      end

      def in_column(link, rows)
        @columns << aligned(rows, link.position)
        Plan::RowSet::InColumn.new(@columns.size - 1)
      end

      # A record whose row was deleted meanwhile gets nil.
      def aligned(rows, position)
        @by_id ||= (rows.is_a?(Array) ? rows : rows.values).to_h { |row| [row.first.to_s, row] }
        @values.ids.map { |id| @by_id[id.to_s]&.at(position) }
      end
    end
  end
end
