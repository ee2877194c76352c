# frozen_string_literal: true

module Castellan
  module Rows
    # One expression of a SELECT list: a column of the table itself, or a subquery that is asked for each row.
    #
    #   Correlated.column(%("users"."email"))
    #   Correlated.path(adapter, %i[employee], :id)   # (SELECT "employees"."id" … WHERE "employees"."user_id" = "users"."id" LIMIT 1)
    #
    # A subquery and not a join, because a join multiplies rows, drops the association's LIMIT, and mixes its order with
    # the caller's; with an index on the foreign key it costs a look-up a row.
    class Correlated
      # @return [Symbol, nil] the column of the row that the subquery needs, nil for a plain column
      # @return [String] SQL; of a subquery, with {OwnerKey} where that column goes
      attr_reader :key, :text

      # @param sql [String]
      def self.column(sql)
        new(nil, sql)
      end

      # @param adapter [Object] of the model where the path begins
      # @param path [Array<Symbol>] to-one associations
      # @param name [Symbol] the column at the end of the path
      def self.path(adapter, path, name)
        association = adapter.association(path.first)
        new(association.owner_key, path_sql(association, path.drop(1), name))
      end

      # Each level but the last is a table of its own name, so that a path may pass a table twice.
      def self.path_sql(association, rest, name)
        target = association.adapter
        return "(#{association.lazy.sql(target.column_sql(name), single: true)})" if rest.empty?

        inner = path(target, rest, name)
        level = "castellan_#{rest.size}"
        key = target.quote(inner.key)
        "(SELECT #{inner.within("#{level}.#{key}")} FROM " \
          "(#{association.lazy.sql("#{target.qualified(inner.key)} AS #{key}", single: true)}) #{level})"
      end
      private_class_method :path_sql

      def initialize(key, text)
        @key = key
        @text = text
        freeze
      end

      # @return [Boolean]
      def column?
        key.nil?
      end

      # @param owner [String] the expression of the owner's key in the surrounding statement
      # @return [String]
      def within(owner)
        column? ? text : OwnerKey.replace(text, owner)
      end

      # @return [Boolean] whether the subquery reads a table of that name, which would hide the row's own
      def hides?(table)
        !column? && text.include?(table)
      end
    end
  end
end
