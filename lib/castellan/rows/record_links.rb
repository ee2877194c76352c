# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the links of a node from records, by relationship, together with the related records.
    #
    # | the relationship's records                     | links are read from                                   |
    # |------------------------------------------------|-------------------------------------------------------|
    # | are loaded, or returned by a block             | the records                                           |
    # | not loaded; the foreign key is sufficient      | the records' own foreign key                          |
    # | not loaded for any parent                      | rows, in one statement: {#to_a} contains nil          |
    # | loaded for some parents, or not SQL            | the records, after one preload of the missing ones    |
    class RecordLinks
      # Finds a record's type in a polymorphic relationship, by its class or the nearest superclass.
      # @return [Integer, nil] the position of the type in relationship.definitions; nil if a resource with `types` leaves it out
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

      # @return [Array<Plan::RowSet::Pairs, nil>] one for each of node.edges; nil if rows must be read
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
          Link.reason(edge, @adapter, id).nil?
      end

      # Without include, the foreign key is the link, whether or not the related record is loaded or exists.
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

      # Deduplicates records that were passed twice.
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
        kinds = all.map { |record| RecordLinks.kind_of(edge.relationship, record) }
        parents, all, kinds = [parents, all, kinds].map { |list| list.select.with_index { |_, index| kinds[index] } } if kinds.include?(nil)
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

      # Also reads the records, if they are included. Ids of records that the viewer may not see are nil.
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
