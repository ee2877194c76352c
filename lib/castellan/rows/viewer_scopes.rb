# frozen_string_literal: true

require "securerandom"

module Castellan
  module Rows
    # Determines which rows of each resource one viewer may see.
    #
    #   scopes = ViewerScopes.new(current_user)
    #   scopes.of(TaskResource.definition, adapter)   # => ScopedRows; nil if all rows are visible
    #
    # Calls each resource's `scope` at most once per document.
    class ViewerScopes
      # Begins the placeholder for the SQL of a scope; random, so that no value in a statement can contain it.
      MARK = "castellan_scope_#{SecureRandom.hex(8)}_".freeze
      PLACEHOLDER = /#{MARK}\d+_/
      private_constant :PLACEHOLDER

      def initialize(viewer)
        @viewer = viewer
        @found = {}.compare_by_identity
        @of_all_types = {}.compare_by_identity
      end

      # @param adapter [Object] any adapter of the same database
      # @return [ScopedRows, nil] nil if there is no scope, or if it returns the relation unchanged
      # @raise [DeclarationError] if the scope returns anything but a relation or dataset of the model
      def of(definition, adapter)
        return unless definition.scope

        @found.fetch(definition) { @found[definition] = within(definition, adapter) }
      end

      # @return [ScopedRows, nil] like {#of}; if the resource has `types`, without the rows that their scopes hide
      def of_all_types(definition, adapter)
        return of(definition, adapter) if definition.types.none?(&:scope)

        @of_all_types.fetch(definition) do
          adapter = adapter.related(definition.model)
          all = Inheritance.new(definition.itself, adapter).narrow(narrow(definition, adapter), self)
          @of_all_types[definition] = ScopedRows.new(definition, adapter, all)
        end
      end

      # @return [ScopedRows, nil] like {#of_all_types}, for a step of a path
      def along(definition, adapter)
        of_all_types(definition, adapter)&.tap { |seen| (@marked ||= {})[seen.mark] = seen }
      end

      # Inserts the scopes' SQL last: the SQL around it is the same for all viewers.
      # @param sql [String] with the {ScopedRows#mark} of scopes that {#along} returned
      # @return [String]
      def filled(sql)
        @marked.nil? || !sql.include?(MARK) ? sql : sql.gsub(PLACEHOLDER) { |mark| @marked.fetch(mark).subquery }
      end

      # @param given [Object, nil] a relation or dataset of the model; nil means all rows
      # @return [Object] the given rows that the viewer may see
      def narrow(definition, adapter, given = nil)
        visible = of(definition, adapter) or return given || adapter.scopes.all
        given ? visible.narrow(given) : visible.all
      end

      # @param ids [Array<Object, nil>] ids of the resource's records
      # @return [Array<Object, nil>] the ids, with nil for those that the viewer may not see
      def visible_ids(definition, adapter, ids)
        visible = of(definition, adapter) or return ids
        seen = visible.ids(ids)
        ids.map { |id| id if seen[id.to_s] }
      end

      # @param records [Array<Object, nil>] records of the resource
      # @return [Array<Object, nil>] the records, with nil for those that the viewer may not see
      def visible_records(definition, adapter, records)
        visible = of_all_types(definition, adapter) or return records
        related = adapter.related(definition.model)
        there = records.compact
        ids = Ids.of(Rows.adapter_for(related, there).instances, there, definition.id_column)
        seen = visible.ids(ids)
        hidden = {}.compare_by_identity # by identity, because several instances of a record may be equal
        there.zip(ids) { |record, id| hidden[record] = true unless seen[id.to_s] }
        records.map { |record| record unless hidden.key?(record) }
      end

      private

      # Applies the scope of a type's resource and that of the resource that lists it in `types`.
      def within(definition, adapter)
        adapter = adapter.related(definition.model)
        definition.scopes_around.reduce(visible(definition, adapter)) do |inner, around|
          outer = of(around, adapter) or next inner
          ScopedRows.new(definition, adapter, outer.narrow(inner ? inner.relation : adapter.scopes.all))
        end
      end

      def visible(definition, adapter)
        all = adapter.scopes.all
        found = definition.scope.block.call(all, @viewer)
        return if found.equal?(all) && unchanged?(all, adapter)

        found = adapter.scopes.from(found) if Rows.scope?(found)
        return ScopedRows.new(definition, adapter, found) if Rows.scope?(found) && adapter.scopes.own?(found)

        raise DeclarationError.new("#{definition.name} scope returned #{shown(found)}: return a relation of #{shown(definition.model)}, " \
                                   "made of the block's first argument: relation.where(…), or relation.none where the viewer may see " \
                                   "nothing", location: definition.scope.location)
      end

      # ActiveRecord's `where!` changes the relation and returns it; Sequel's datasets are frozen.
      def unchanged?(scope, adapter)
        scope.frozen? || !scope.respond_to?(:values) || scope.values == adapter.scopes.all.values
      end

      def shown(found)
        return found.name || "a class" if found.is_a?(Module)

        found.nil? ? "nil" : "an object of #{found.class}"
      end

      # Restricts the rows of a scoped resource to those that a viewer may see, with an SQL condition.
      #
      #   visible = ScopedRows.new(TaskResource.definition, adapter, Task.where(team: 7))
      #   visible.condition    # => "tasks"."id" IN (SELECT "tasks"."id" FROM "tasks" WHERE …)
      #   visible.ids([1, 2])  # => { "1" => true }: the viewer may not see the second
      #
      # The condition is a subquery by primary key, so that the scope's joins, LIMIT or GROUP
      # BY stay inside it. One per document.
      class ScopedRows
        # @return [Object] the scope's result: a relation or dataset
        attr_reader :relation

        # @param adapter [Object] the adapter of the resource's model
        def initialize(definition, adapter, relation)
          @definition = definition
          @adapter = adapter
          @relation = relation
        end

        # @return [Array<Symbol>] the primary key's columns, or the columns of the resource's id without one
        def keys
          @keys ||= @adapter.scopes.keys || [*@definition.id_column]
        end

        # @return [String] a SELECT of the keys
        def subquery
          @subquery ||= @adapter.scopes.subquery_sql(relation, keys)
        end

        # @return [String] a placeholder for {#subquery}, the same for all viewers
        def mark = "#{MARK}#{@definition.object_id}_"

        # @return [Array(String, Array)] see {Scopes#identity}
        def identity = @adapter.scopes.identity(relation)

        # @return [String] an SQL condition on the resource's table
        def condition
          @condition ||= @adapter.scopes.among_sql(keys, subquery)
        end

        # @param scope [Object] a relation or dataset of the resource's model
        # @return [Object] the scope's rows that the viewer may see
        def narrow(scope) = @adapter.scopes.where_sql(scope, condition)

        # @return [Object] all rows that the viewer may see, for a collection
        def all = @adapter.scopes.plain?(relation) ? relation : narrow(@adapter.scopes.all)

        # @param ids [Array<Object>] may contain nil
        # @return [Hash{String => true}] the ids that the viewer may see, as strings
        def ids(ids)
          ids = ids.compact.uniq
          return {} if ids.empty?

          column = @definition.id_column
          chosen = @adapter.scopes.by_ids(narrow(@adapter.scopes.all), ids, column)
          scopes = @adapter.scopes
          found = column.is_a?(Array) ? Ids.of(@adapter.instances, scopes.load(chosen), column) : scopes.ids(chosen, column)
          found.to_h { |id| [id.to_s, true] }
        end
      end
    end
  end
end
