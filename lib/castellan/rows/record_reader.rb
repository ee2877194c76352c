# frozen_string_literal: true

module Castellan
  module Rows
    # Reads one node from records: attributes through their readers, and loaded associations.
    #
    #   RecordReader.new(reader, node, [ada, alan], reading).table   # => Plan::RowSet::Table
    #
    # Reads columns and links that are not loaded as rows, in one statement for all records.
    class RecordReader
      def initialize(reader, node, records, reading)
        @reader = reader
        @node = node
        @adapter = reader.adapter_of(node)
        @instances = @adapter.instances
        @records = records
        @reading = reading
        @width = node.columns.size
        @rows, @coders = @instances.rows(records, stored_names) || [Array.new(records.size) { Array.new(@width) }, Array.new(@width)]
        @ids = @coders.first ? @rows.map(&:first) : Ids.of(@instances, records, node.definition.id_column)
        @computed = {}
        @unloaded = []
        @typed = {}
      end

      def table
        fill(0, @ids, JSONValue.coder(@ids) || :text) unless @coders[0]
        @node.members.each_with_index { |member, index| member(member.attribute, member.positions.first, index) }
        links = Links.new(@reader, @node, @records, @ids, @reading).to_a
        read_unloaded(links) if @unloaded.any? || unread(links).any?
        Plan::RowSet::Table.new(node: @node, rows: @rows, coders: @coders, links: links, computed: @computed, asides: asides,
                                retype: method(:retyped))
      end

      private

      # (see ComputedMembers#retyped)
      def retyped(index)
        member = @node.members[index]
        position = member.positions.first
        values = @typed[position] || walk(member.attribute, position)
        texts(index, values) if values
      rescue StandardError
        nil # the caller raises the coder's error, which names the value
      end

      def asides = ComputedMembers::Asides.of(@node, @adapter, -> { @ids }) { |aside| block(aside.computed) }

      # @return [Array<Symbol, nil>] for each position, the record's own column that is read there
      def stored_names
        names = Array.new(@width)
        names[0] = @node.definition.id_column if @node.definition.id_column.is_a?(Symbol)
        @node.members.each do |member|
          names[member.positions.first] = member.attribute.columns.first if member.attribute.source == :column
        end
        names
      end

      def member(attribute, position, index)
        case attribute.source
        when :computed, :record then @computed[index] = texts(index, block(attribute))
        when :column then take(position, index, column(attribute)) unless @coders[position]
        when :path
          values = walk(attribute, position, load: !rows?(attribute))
          values ? take(position, index, values) : @unloaded << [position, index]
        end
      end

      def column(attribute)
        name = attribute.columns.first
        attribute.as_stored ? @instances.stored(@records, name) : @instances.read(@records, name)
      end

      # @param computed [#block, #columns] a computed member; without columns, its block takes the record
      def block(computed)
        block = ComputedMembers::Blocks.bound(computed.block, @reading.viewer)
        return @records.map(&block) unless computed.columns

        columns = computed.columns.map { |name| @instances.read(@records, name) }
        ComputedMembers::Blocks.rows(computed.columns, columns, @records.size).map(&block)
      end

      def take(position, index, values)
        coder = JSONValue.coder(values)
        coder ? fill(position, values, coder) : @computed[index] = texts(index, values)
      end

      def fill(position, values, coder)
        @rows.each_with_index { |row, index| row[position] = values[index] }
        @coders[position] = coder
      end

      def texts(index, values)
        JSONValue.texts(values, @adapter, @node, @node.members[index].attribute.key) { |row| @ids[row] }
      end

      # @param load [Boolean] whether to load missing associations
      # @return [Array<Object>, nil] the values at the path's end; nil if an association is not loaded
      def walk(attribute, position, load: false)
        along = @reader.along(@node.columns[position]) || []
        ends = attribute.path.zip(along).reduce(@records) do |level, (association, definition)|
          level && step(level, association, definition, load)
        end
        way = attribute.as_stored ? :stored : :read
        ends&.map { |record| record && @instances.public_send(way, [record], attribute.columns.first).first }
      end

      def step(level, association, definition, load)
        missing = level.compact.reject { |record| @instances.loaded?(record, association) }
        return unless missing.empty? || load

        @instances.preload_where_same(missing, association) if missing.any?
        found = level.map { |record| record && @instances.related(record, association).first }
        definition ? @reading.scopes.visible_records(definition, @adapter, found) : found
      end

      def rows?(attribute)
        !@adapter.model.nil? && @node.definition.id_column.is_a?(Symbol) && @instances.stored?(@records) &&
          ModelReasons.of_path(@adapter, attribute.path, attribute.columns.first, as_stored: attribute.as_stored).nil?
      end

      def unread(links) = @node.edges.each_index.select { |index| links[index].nil? && @node.edges[index].data }

      def read_unloaded(links)
        unread = unread(links)
        @reader.part(@node, @unloaded.map(&:first), unread, @ids.uniq, @reading) do |rows, found|
          @unloaded.each.with_index(1) { |(position, index), place| take(position, index, typed(position, aligned(rows, place))) }
          found = found.map { |link| link.is_a?(Plan::RowSet::InColumn) ? in_column(link, rows) : link }
          unread.each { |index| links[index] = found.shift }
        end
      end

      def typed(position, values)
        column = @node.columns[position]
        types = @adapter.at(column.path).types
        @typed[position] = values.map { |value| types.cast(column.name, value) }
      end

      def in_column(link, rows)
        values = aligned(rows, link.position)
        @rows.each_with_index { |row, index| row[@width] = values[index] }
        @width += 1
        Plan::RowSet::InColumn.new(@width - 1)
      end

      # Returns nil for a record whose row was deleted in the meantime.
      def aligned(rows, position)
        @by_id ||= (rows.is_a?(Array) ? rows : rows.values).to_h { |row| [row.first.to_s, row] }
        @ids.map { |id| @by_id[id.to_s]&.at(position) }
      end

      # Reads the links of a node from records, by relationship, together with the related records.
      #
      # | related records                                 | links are read from                            |
      # |-------------------------------------------------|------------------------------------------------|
      # | loaded, or returned by a block                  | the records                                    |
      # | not loaded; the foreign key is sufficient       | the records' own foreign key                   |
      # | not loaded for any parent                       | rows, in one statement: {#to_a} contains nil   |
      # | loaded for some parents, or not readable in SQL | the records, after one preload of missing ones |
      class Links
        # Finds a record's type in a polymorphic relationship, by its class or the nearest superclass.
        # @return [Integer, nil] the type's position in relationship.definitions; nil
        #   if a resource with `types` omits it
        # @raise [ConfigurationError] if no resource is declared for the record's class
        def self.kind_of(relationship, record)
          kinds = relationship.kinds.map { |kind| kind.is_a?(Class) ? kind.name : kind.to_s }
          names = record.class.ancestors.grep(Class).map(&:name)
          names.each { |name| kinds.index(name)&.then { |kind| return kind } }
          return if relationship.leaves_out?

          raise ConfigurationError, "#{relationship.name}: no resource is declared for records of #{record.class}; name it in resource: " \
                                    "(#{relationship.location})"
        end

        def initialize(reader, node, records, ids, reading)
          @reader = reader
          @node = node
          @adapter = reader.adapter_of(node)
          @instances = @adapter.instances
          @records = records
          @ids = ids
          @reading = reading
        end

        # @return [Array<Plan::RowSet::Pairs, nil>] the links of each of node.edges; nil if rows must be read
        def to_a
          @links = []
          @node.edges.each_with_index { |edge, index| @links[index] = link(edge, index) }
          @links
        end

        private

        def link(edge, index)
          return unless edge.data

          relationship = edge.relationship
          return linked(edge, @records) if relationship.itself?
          return linked(edge, @records.map(&ComputedMembers::Blocks.bound(relationship.block, @reading.viewer))) if relationship.block

          return of_keys(edge) if edge.node.nil? && keys?(edge)
          return of_types_and_keys(edge) if edge.alternatives&.none? && rows?(edge)

          missing = @records.reject { |record| @instances.loaded?(record, relationship.association_name) }
          return read_by_rows(edge, index) if missing.any? && missing.size == @records.size && rows?(edge)

          @instances.preload_where_same(missing, relationship.association_name) if missing.any?
          linked(edge, @records.map { |record| @instances.related(record, relationship.association_name) })
        end

        def rows?(edge)
          id = @node.definition.id_column
          association = @adapter.association(edge.relationship.association_name)
          association && id.is_a?(Symbol) && association.rows?(edge.relationship) && @instances.stored?(@records) &&
            (@reader.kept?(edge) || Link.reason(edge, @adapter, id).nil?)
        end

        # Without include, the foreign key is the link, even if the related
        # record is not loaded or does not exist.
        def keys?(edge)
          association = @adapter.association(edge.relationship.association_name)
          !edge.alternatives && association && association.rows?(edge.relationship) && @instances.stored?(@records) &&
            association.foreign_key_of?(edge.relationship.definition.id_column)
        end

        def read_by_rows(edge, index)
          return unless keys?(edge)

          found = of_keys(edge)
          ids = found.rows.filter_map(&:last).uniq
          @reader.by_ids(edge.node, ids, @reading) do |table|
            @links[index] = Linkage.without_missing(found, nil, ColumnValues.column(table.rows, 0), ids, several: false)
          end
          @links[index] || found
        end

        def of_keys(edge)
          keys = @instances.read(@records, @adapter.association(edge.relationship.association_name).owner_key)
          Plan::RowSet::Pairs.new(@ids.zip(@reading.scopes.visible_ids(edge.relationship.definition, @adapter, keys)), 0, 1)
        end

        def of_types_and_keys(edge)
          association = @adapter.association(edge.relationship.association_name)
          types, keys = [association.type_column, association.owner_key].map { |column| @instances.read(@records, column) }
          Plan::RowSet::Pairs.new(Link::Polymorphic.new(edge, @adapter).rows(@ids, types, keys, @reading.scopes), 0, 1, 2)
        end

        def linked(edge, found)
          found = @ids.zip(found).uniq(&:first)
          parents = []
          all = found.flat_map do |id, related|
            related = Records.list?(related) ? related.to_a : [related].compact unless related.is_a?(Array)
            related.each { parents << id }
          end
          return several(edge, parents, all) if edge.alternatives

          visible(parents.zip(ids_of(edge.relationship.definition, edge.node, all)), edge, 0, 1)
        end

        def several(edge, parents, all)
          kinds = all.map { |record| Links.kind_of(edge.relationship, record) }
          known = kinds.each_index.select { |index| kinds[index] }
          parents, all, kinds = [parents, all, kinds].map { |list| list.values_at(*known) } if known.size < kinds.size
          ids = Array.new(all.size)
          edge.relationship.definitions.each_with_index do |definition, kind|
            chosen = kinds.each_index.select { |index| kinds[index] == kind }
            found = ids_of(definition, edge.alternatives[kind], all.values_at(*chosen))
            chosen.zip(found) { |index, id| ids[index] = id }
          end
          visible(parents.zip(ids, kinds), edge, 0, 1, 2)
        end

        def visible(pairs, edge, *positions)
          pairs = pairs.select { |_, id, _| id } if edge.relationship.definitions.any?(&:scope)
          Plan::RowSet::Pairs.new(pairs, *positions)
        end

        # Also reads the records if they are included. Returns nil for records that the viewer may not see.
        def ids_of(definition, node, records)
          adapter = node ? @reader.adapter_of(node) : @adapter.related(definition.model)
          ids = Ids.of(adapter.instances, records, definition.id_column)
          ids = @reading.scopes.visible_ids(definition, adapter, ids)
          @reader.records(node, records.zip(ids).select { |_, id| id || definition.scope.nil? }.uniq(&:last).map(&:first), @reading) if node
          ids
        end
      end
    end
  end
end
