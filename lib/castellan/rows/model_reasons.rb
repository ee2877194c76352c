# frozen_string_literal: true

module Castellan
  module Rows
    # Lists the reasons why a node must be read through models, or none if rows are sufficient.
    #
    #   ModelReasons.of(node, adapter)   # => ["label: its block takes the record"]
    #
    # One such member makes Castellan load all records of the type through
    # models; other types are still read as rows.
    class ModelReasons
      AS_STORED = "write as_stored: true for the column as it is in the table"

      def self.of(node, adapter) = new(node, adapter).to_a

      # @return [Array<String>] the reasons why the node may read tables that Castellan cannot determine
      def self.of_tables(node, adapter) = new(node, adapter).of_tables

      # @param edge [Plan::Edge] an edge of the node
      # @return [Boolean] whether linkage requires loading the related records
      def self.link_by_records?(node, edge, adapter)
        node.definition.id_column.is_a?(Array) || !new(node, adapter).of_edge(edge).nil?
      end

      # @param definition [Resource::Definition] a definition whose id column is an array
      # @return [String] why its id cannot be read from a row
      def self.of_id(definition)
        columns = definition.id_column
        return "the key of #{definition.type} has several columns" if columns.size > 1

        "#{columns.first}, the id of #{definition.type}, is not written as it stands in the row"
      end

      # @param adapter [Object] the adapter of the model where the path begins
      # @param path [Array<Symbol>] to-one associations
      # @param column [Symbol] the column at the end of the path
      # @param as_stored [Boolean] whether the model's methods and callbacks are ignored
      # @return [String, nil] why rows cannot read the column; nil if they can
      def self.of_path(adapter, path, column, as_stored: false)
        broken = broken_path(adapter, path) and return broken
        reason = adapter.at(path).types.record_reason(column) unless as_stored
        "#{reason}; #{AS_STORED}" if reason
      end

      # @return [String, nil] why SQL cannot follow the path
      def self.broken_path(adapter, path)
        path.each do |name|
          association = adapter.association(name)
          reason = association.reason || ("it is in another database" unless association.adapter.same_database?(adapter))
          return "#{name} cannot be read as rows: #{reason}" if reason

          adapter = association.adapter
        end
        nil
      end

      # @return [String] the code's location, as in " (app/models/user.rb:12)"; empty if Ruby has none
      def self.place(code)
        path, line = code&.source_location
        path ? " (#{path.delete_prefix("#{Dir.pwd}/")}:#{line})" : ""
      end

      def initialize(node, adapter)
        @node = node
        @adapter = adapter
      end

      def to_a
        [@adapter.dialect.reason, composite_key,
         *@node.members.map { |member| of_attribute(member.attribute) }, *@node.edges.map { |edge| of_edge(edge) },
         *@node.asides.map { |aside| of_aside(aside) }].compact
      end

      def of_tables
        [composite_key, *@node.members.map { |member| beyond_tables(member.attribute) }, *@node.edges.map { |edge| of_edge(edge) }].compact
      end

      def of_edge(edge)
        relationship = edge.relationship
        return if relationship.itself?
        return "#{relationship.name}: its block takes the record" if relationship.block

        association = @adapter.association(relationship.association_name) or return "#{relationship.name}: it is no association"
        reason = association.reason_for(relationship) || Link.reason(edge, @adapter, @node.definition.id_column)
        "#{relationship.name}: it cannot be read as rows: #{reason}" if reason
      end

      private

      def composite_key
        return unless @node.definition.id_column.is_a?(Array)

        columns = @node.definition.id_column
        return "id: #{columns.first} is not written as it stands in the row" if columns.one?

        "id: its key has several columns (#{columns.join(", ")})"
      end

      def of_attribute(attribute)
        case attribute.source
        when :record then "#{attribute.name}: its block takes the record"
        when :column then of_column(attribute)
        when :path then of_path(attribute)
        when :computed then of_block(attribute.name, attribute)
        end
      end

      # A reader that the model overrides also applies to columns that a block reads.
      def of_block(label, computed)
        column = computed.columns.find { |name| @adapter.columns.include?(name) && @adapter.types.record_reason(name) } or return
        "#{label}: its block reads #{column}: #{@adapter.types.record_reason(column)}"
      end

      def beyond_tables(attribute)
        walked = attribute.preloads
        return "#{attribute.name}: its block reads other records (preloads: #{walked.join(", ")})" if walked&.any?

        reason = self.class.broken_path(@adapter, attribute.path) if attribute.source == :path
        "#{attribute.name}: #{reason}" if reason
      end

      def of_column(attribute)
        column = attribute.columns.first
        return "#{attribute.name}: #{column} is no column" unless @adapter.columns.include?(column)

        return if attribute.as_stored

        reason = @adapter.types.record_reason(column)
        "#{attribute.name}: #{reason}; #{AS_STORED}" if reason
      end

      def of_path(attribute)
        reason = self.class.of_path(@adapter, attribute.path, attribute.columns.first, as_stored: attribute.as_stored)
        "#{attribute.name}: #{reason}" if reason
      end

      def of_aside(aside)
        aside.computed.columns ? of_block(aside.label, aside.computed) : "#{aside.label}: its block takes the record"
      end
    end
  end
end
