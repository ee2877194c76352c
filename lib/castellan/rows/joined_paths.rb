# frozen_string_literal: true

module Castellan
  module Rows
    # Reads columns at the end of to-one paths with LEFT JOINs.
    # Joins a path only if a primary key or unique index finds at most one row for each step and no scope
    # applies. A join builds one hash table; a subquery is a look-up for each row.
    #
    #   joined = JoinedPaths.of(node, adapter)
    #   joined.text       # => LEFT JOIN (SELECT … FROM "employees") castellan_j0 ON …
    #   joined.columns    # => { 5 => "castellan_j0.castellan_v5" }, by position in the node's columns
    #
    # Joined tables and columns get aliases, so that no column of the caller's scope becomes ambiguous.
    # Frozen, one for each plan.
    class JoinedPaths
      # @return [Hash{Integer => String}]
      # @return [String]
      attr_reader :columns, :text

      # @param scopes [PlanScopes, nil]
      # @return [JoinedPaths, nil] nil if no path can be joined
      def self.of(node, adapter, scopes = nil)
        return unless adapter.dialect.joins_paths?

        joined = new(node, adapter, scopes)
        joined unless joined.columns.empty?
      end

      def initialize(node, adapter, scopes)
        @columns = {}
        @joins = []
        paths = node.columns.each_with_index.filter_map do |column, index|
          [column.path, column.name, index] if sure?(adapter, column.path) && !scopes&.along(column)
        end
        join(adapter, paths, &adapter.method(:qualified))
        @text = @joins.join(" ").freeze
        @columns.freeze
        freeze
      end

      private

      def sure?(adapter, path)
        !path.empty? && !path.reduce(adapter) { |level, name| level && after(level, name) }.nil?
      end

      def after(adapter, name)
        association = adapter.association(name)
        association.adapter if association.reason.nil? && association.sure_key && association.adapter.same_database?(adapter)
      end

      # @yieldparam column [Symbol] the owner's key
      # @yieldreturn [String] its expression in the statement
      def join(adapter, paths)
        paths.group_by { |path, _, _| path.first }.each do |name, some|
          association = adapter.association(name)
          add(association, some.map { |path, column, index| [path.drop(1), column, index] }, yield(association.owner_key))
        end
      end

      def add(association, paths, owner)
        number = @joins.size
        target = association.adapter
        ends, further = paths.partition { |path, _, _| path.empty? }
        keys = further.map { |path, _, _| target.association(path.first).owner_key }.uniq
        @joins << nil
        @joins[number] = "LEFT JOIN (SELECT #{list(association, number, ends, keys)} FROM #{target.table_sql}) castellan_j#{number} " \
                         "ON castellan_j#{number}.castellan_k = #{owner}"
        join(target, further) { |key| "castellan_j#{number}.castellan_o#{keys.index(key)}" }
      end

      def list(association, number, ends, keys)
        target = association.adapter
        ends.each { |_, _, index| @columns[index] = "castellan_j#{number}.castellan_v#{index}" }
        ["#{target.quote(association.sure_key)} AS castellan_k",
         *ends.map { |_, column, index| "#{target.column_sql(column)} AS castellan_v#{index}" },
         *keys.map.with_index { |key, index| "#{target.quote(key)} AS castellan_o#{index}" }].join(", ")
      end
    end
  end
end
