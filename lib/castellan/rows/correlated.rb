# frozen_string_literal: true

require "securerandom"

module Castellan
  module Rows
    # Represents one expression of a SELECT list: a column of the table, or a correlated subquery.
    #
    #   Correlated.column(%("users"."email"))
    #   Correlated.path(adapter, %i[employee], :id)   # (SELECT "employees"."id" … = "users"."id" LIMIT 1)
    #
    # Uses a subquery instead of a join, because a join multiplies rows, drops the association's LIMIT, and
    # mixes its order with the caller's. With an index, it costs one look-up per row.
    class Correlated
      # Placeholder for the SQL of a scope; random, so that no value in a statement can contain it.
      MARK = "castellan_scope_#{SecureRandom.hex(8)}_".freeze
      NOTHING = [].freeze
      private_constant :MARK, :NOTHING

      # @return [Symbol, nil] the owner's column that the subquery needs; nil for a plain column
      # @return [String] SQL; a subquery contains {Association::OwnerKey} in place of that column
      attr_reader :key, :text

      def self.column(sql) = new(nil, sql)

      # @param adapter [Object] the adapter of the model where the path begins
      # @param visible [Array<ScopedRows, nil>] the viewer's scope for each step; hidden rows become NULL
      def self.path(adapter, path, name, visible = NOTHING)
        association = adapter.association(path.first)
        new(association.owner_key, path_sql(association, path.drop(1), name, visible), visible.compact)
      end

      # Each level gets a table alias of its own, so that a path may pass a table twice.
      def self.path_sql(association, rest, name, visible)
        target = association.adapter
        seen = visible.first
        return "(#{association.lazy.sql(target.types.sql(name), single: true)})" if rest.empty? && seen.nil?

        level = "castellan_#{rest.size}"
        inner = path(target, rest, name, visible.drop(1)) unless rest.empty?
        value = inner ? inner.placed("#{level}.castellan_value") : "#{level}.castellan_value"
        list = ["#{inner ? target.types.qualified(inner.key) : target.types.sql(name)} AS castellan_value"]
        seen&.keys&.each_with_index { |key, index| list << "#{target.types.qualified(key)} AS castellan_key#{index}" }
        from = association.lazy.sql(list.join(", "), single: true)
        "(SELECT #{value} FROM (#{from}) #{level}#{" WHERE #{condition(level, seen)}" if seen})"
      end

      # The scope's SQL is inserted last, because values in it may look like {Association::OwnerKey}.
      def self.condition(level, seen)
        columns = Array.new(seen.keys.size) { |index| "#{level}.castellan_key#{index}" }
        "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{MARK}#{seen.object_id}_)"
      end
      private_class_method :path_sql, :condition

      # @param visible [Array<ScopedRows>] the scopes whose SQL {#within} inserts
      def initialize(key, text, visible = NOTHING)
        @key = key
        @text = text
        @visible = visible
        freeze
      end

      def column? = key.nil?

      # @param owner [String] the SQL expression of the owner's key in the surrounding statement
      def within(owner) = column? ? text : filled(placed(owner))

      # @return [String] SQL with the owner's key, still with placeholders for the scopes
      def placed(owner) = Association::OwnerKey.replace(text, owner)

      # @return [Boolean] whether the subquery reads a table of that name, which would hide the outer one
      def hides?(table) = !column? && text.include?(table)

      private

      def filled(sql)
        return sql if @visible.empty?

        texts = @visible.to_h { |seen| ["#{MARK}#{seen.object_id}_", seen.subquery] }
        sql.gsub(/#{MARK}\d+_/) { |mark| texts.fetch(mark) }
      end
    end
  end
end
