# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Builds the SELECT that reads a relation's rows, each once. Omits what concerns instances (includes,
      # strict_loading, readonly).
      #
      #   RelationSql.select(RelationSql.once(User.joins(:roles).distinct), %("users"."id"))
      #   RelationSql.reason(User.group(:id))   # => "it has GROUP BY or HAVING": its records are loaded instead
      module RelationSql
        WINDOW = %i[order limit offset lock readonly].freeze
        INSTANCES = %i[includes preload eager_load].freeze
        SELECTED = %i[select distinct lock].freeze
        UNUSUAL = %i[select from group having joins left_outer_joins eager_load includes].freeze
        private_constant :WINDOW, :INSTANCES, :SELECTED, :UNUSUAL

        module_function

        # @return [String] SQL
        def select(relation, list)
          relation.reselect(Arel.sql(list)).to_sql
        end

        # @return [String, nil] why the relation's rows cannot be selected in its order, each once
        def reason(relation)
          values = relation.values
          return unless values.keys.intersect?(UNUSUAL)

          if values.key?(:from) then "it has a FROM of its own"
          elsif expressions?(relation) then "it selects something else than columns"
          elsif values.key?(:group) || values.key?(:having) then "it has GROUP BY or HAVING"
          elsif repeats?(relation) && !own_order?(relation)
            "it joins tables, and its order is not made of its own columns alone, as in order(name: :desc)"
          end
        end

        # @return [Boolean] whether the relation selects anything but columns of its table
        def expressions?(relation)
          !relation.select_values.all? { |selected| columns?(selected, relation.klass) }
        end

        # @return [Boolean] whether a join may return a row several times
        def repeats?(relation)
          !relation.klass.primary_key.nil? &&
            (relation.joins_values.any? || relation.left_outer_joins_values.any? || relation.eager_loading?)
        end

        # Turns a relation with duplicate rows into `WHERE id IN (relation)`, with its order and limit.
        # @return [ActiveRecord::Relation]
        def once(relation)
          return without(relation, [*INSTANCES, :select, *(:distinct if relation.klass.primary_key)]) unless repeats?(relation)

          all = joined(relation).except(*WINDOW, *INSTANCES, *SELECTED)
          among(relation.klass, all).merge(relation.only(*WINDOW))
        end

        # @return [ActiveRecord::Relation] with JOINs instead of eager loading
        def joined(relation)
          return relation unless relation.eager_loading?

          relation.left_outer_joins(*relation.eager_load_values, *(relation.includes_values if relation.references_values.any?))
        end

        # @return [Array<Symbol>] the primary key's columns
        # @raise [DeclarationError]
        def keys(model)
          keys = Array(model.primary_key).map(&:to_sym)
          return keys if keys.any?

          raise DeclarationError, "#{model}: a scope with a join, DISTINCT, GROUP BY or LIMIT needs a primary key (a view has none)"
        end

        # Returns the relation itself if it has none of these values, because `except` copies it.
        def without(relation, values)
          relation.values.keys.intersect?(values) ? relation.except(*values) : relation
        end

        def among(model, chosen)
          columns = keys(model).map { |key| model.arel_table[key] }
          ids = chosen.reselect(*columns)
          return model.unscoped.where(columns.first.name => ids) if columns.size == 1

          model.unscoped.where(Arel::Nodes::In.new(Arel::Nodes::Grouping.new(columns), ids.arel.ast))
        end

        def columns?(selected, model)
          case selected
          when Symbol, String
            selected.to_s.split(",").all? { |part| column?(part.delete('"`').strip.delete_prefix("#{model.table_name}."), model) }
          when Arel::Attributes::Attribute then selected.relation == model.arel_table
          else false
          end
        end

        def column?(name, model)
          name == "*" || model.columns_hash.key?(name) || model.attribute_aliases.key?(name)
        end

        def own_order?(relation)
          own = relation.klass.arel_table
          relation.order_values.all? do |term|
            term.is_a?(Arel::Nodes::Ordering) && term.expr.is_a?(Arel::Attributes::Attribute) && term.expr.relation == own
          end
        end
        private_class_method :without, :among, :columns?, :column?, :own_order?
      end
    end
  end
end
