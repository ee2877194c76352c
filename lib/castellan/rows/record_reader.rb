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
        @values = Values.new(node, @adapter, records, reading)
        @width = node.columns.size
        @rows, @coders = @values.rows(stored_names) || [Array.new(records.size) { Array.new(@width) }, Array.new(@width)]
        @computed = {}
        @unloaded = []
        @retyped = {}
      end

      # @return [Plan::RowSet::Table]
      def table
        read_members
        links = RecordLinks.new(@reader, @node, @records, @values.ids, @reading).to_a
        read_unloaded(links) if @unloaded.any? || unread(links).any?
        Plan::RowSet::Table.new(node: @node, rows: @rows, coders: @coders, links: links, computed: @computed, asides: asides,
                                retype: method(:retyped))
      end

      private

      # (see ComputedMembers#retyped)
      def retyped(index)
        member = @node.members[index]
        attribute = member.attribute
        position = member.positions.first
        values = @retyped[position]&.call || walk(attribute, position)
        JSONValue.texts(values, @adapter, @node, attribute.key) { |row| @values.ids[row] } if values
      rescue StandardError
        nil # the coder's error names the value
      end

      def asides
        RowExtras.of(@node, @adapter, -> { @values.ids }) { |aside| @values.computed(aside.computed) }
      end

      # @return [Array<Symbol, nil>] for each position the column of the records' own that is read there
      def stored_names
        names = Array.new(@width)
        names[0] = @node.definition.id_column if @node.definition.id_column.is_a?(Symbol)
        @node.members.each do |member|
          names[member.positions.first] = member.attribute.columns.first if member.attribute.source == :column
        end
        names
      end

      def read_members
        fill(0, @values.ids, JSONValue.coder(@values.ids) || :text) unless @coders[0]
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
        return if @coders[position]

        values, coder = @values.column(attribute.columns.first, as_stored: attribute.as_stored)
        coder ? fill(position, values, coder) : compute(index, values)
      end

      def path(attribute, position, index)
        values = walk(attribute, position, load: !rows?(attribute))
        return @unloaded << [position, index] unless values

        coder = JSONValue.coder(values)
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
        @rows.each_with_index { |row, index| row[position] = values[index] }
        @coders[position] = coder
      end

      def compute(index, values)
        @computed[index] = JSONValue.texts(values, @adapter, @node, @node.members[index].attribute.key) { |row| @values.ids[row] }
      end

      def unread(links)
        @node.edges.each_index.select { |index| links[index].nil? && @node.edges[index].data }
      end

      # Reads by ids what is not loaded: columns at the end of paths, and links.
      def read_unloaded(links)
        unread = unread(links)
        edges = @node.edges.values_at(*unread)
        part = Plan::Node.new(definition: @node.definition, path: @node.path, members: [], edges: edges,
                              columns: [@node.columns.first, *@unloaded.map { |position, _| @node.columns[position] }])
        @reader.part(part, @adapter, @values.ids.uniq, @reading) do |rows, found, coders|
          take_columns(rows, coders)
          found = found.map { |link| link.is_a?(Plan::RowSet::InColumn) ? in_column(link, rows) : link }
          unread.each { |index| links[index] = found.shift }
        end
      end

      def take_columns(rows, coders)
        @unloaded.each.with_index(1) do |(position, index), place|
          values = aligned(rows, place)
          next compute(index, typed(position, values)) unless coders[place]

          fill(position, values, coders[place])
          @retyped[position] = -> { typed(position, values) }
        end
      end

      def typed(position, values)
        column = @node.columns[position]
        at = @adapter.at(column.path)
        values.map { |value| at.types.cast(column.name, value) }
      end

      def in_column(link, rows)
        values = aligned(rows, link.position)
        @rows.each_with_index { |row, index| row[@width] = values[index] }
        @width += 1
        Plan::RowSet::InColumn.new(@width - 1)
      end

      # A record whose row was deleted meanwhile gets nil.
      def aligned(rows, position)
        @by_id ||= (rows.is_a?(Array) ? rows : rows.values).to_h { |row| [row.first.to_s, row] }
        @values.ids.map { |id| @by_id[id.to_s]&.at(position) }
      end

      # Reads the values of one node's members from records.
      #
      #   values = Values.new(node, adapter, [ada, alan], reading)
      #   values.ids             # => [1, 2]
      #   values.read(:email)    # => ["ada@example.com", …]
      #   values.computed(attribute)   # => the results of the attribute's block
      class Values
        def initialize(node, adapter, records, reading)
          @node = node
          @adapter = adapter
          @instances = adapter.instances
          @records = records
          @viewer = reading.viewer
          @scopes = reading.scopes
          @read = {}
          @loaded = @instances.columns(records)
        end

        # @param names [Array<Symbol, nil>] columns, the id first
        # @return [Array(Array<Array>, Array<Symbol, nil>), nil] see {ActiveRecordRows::LoadedColumns#rows}
        def rows(names)
          found = @loaded&.rows(names)
          @ids = found.first.map(&:first) if found&.last&.first
          found
        end

        # @return [Array<Object>]
        def ids
          @ids ||= (one_column(@node.definition.id_column) || [Ids.of(@instances, @records, @node.definition.id_column)]).first
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
          return [values, JSONValue.coder(values)] if values

          one_column(name) || [read(name), JSONValue.coder(read(name))]
        end

        # @param computed [#block, #columns] a computed member; without columns its block takes the record
        # @return [Array<Object>] the block's result for each record
        def computed(computed)
          block = Blocks.bound(computed.block, @viewer)
          return @records.map(&block) unless computed.columns

          Blocks.rows(computed.columns, computed.columns.map { |name| read(name) }, @records.size).map(&block)
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
          @loaded.column(name) if @loaded && name.is_a?(Symbol)
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
end
