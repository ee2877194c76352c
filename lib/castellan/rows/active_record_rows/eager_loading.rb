# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Checks whether preloading an association finds the same records as lazy loading.
      #
      #   EagerLoading.same?(rows, User, :roles)            # => true
      #   EagerLoading.same?(rows, User, :two_last_logins)  # => false: LIMIT
      #
      # Preloading differs in these cases: LIMIT and OFFSET (they apply to all parents together), GROUP BY, a
      # SELECT without the key, DISTINCT or several orders on a :through path, a table that the path passes
      # twice, and keys of different types, which preloading compares as strings.
      module EagerLoading
        module_function

        # @param adapter [ActiveRecordRows] the adapter of the records' table
        # @param model [Class] the records' model
        # @param name [Symbol] an association
        # @param related [Array<Class>] for a polymorphic belongs_to, the classes that the records refer to
        # @return [Boolean]
        def same?(adapter, model, name, related = [])
          reflection = model.reflect_on_association(name)
          steps = steps(model, reflection)
          return false unless steps.all? { |owner, step| alike?(adapter, owner, step, related) }

          relations = steps.map { |_, step| relations(step, related) }
          return false unless relations.all? && relations.first.all? { |own| whole?(own) }

          passed = relations.drop(1).flatten(1)
          return false unless passed.all? { |relation| whole?(relation) && !relation.distinct_value }

          steps.one? || (relations.flatten(1).count { |relation| relation.order_values.any? } < 2 && !twice?(reflection))
        end

        def twice?(reflection)
          tables = reflection.chain.map { |link| link.klass.table_name }
          tables != tables.uniq
        end

        # The association and those that it goes through, each with its owner model.
        def steps(model, reflection)
          return [[model, reflection]] unless reflection.through_reflection?

          through = reflection.through_reflection
          [[model, reflection], *steps(model, through), *steps(through.klass, reflection.source_reflection)]
        end

        def alike?(adapter, owner, step, related)
          step.through_reflection? || classes(step, related).all? { |klass| KeyTypes.of(adapter, owner, step, klass).preloaded? }
        end

        def classes(step, related)
          step.polymorphic? ? related : [step.klass]
        end

        # @return [Array<ActiveRecord::Relation>, nil] relations of the step's scopes; nil if one needs a
        #   record
        def relations(step, related)
          classes = classes(step, related)
          return classes.reject { |klass| klass.default_scopes.empty? }.map(&:all) unless step.scope
          return if step.scope.arity != 0 || classes.empty?

          classes.map { |klass| klass.all.instance_exec(&step.scope) || klass.all }
        end

        def whole?(relation)
          !relation.limit_value && !relation.offset_value && relation.group_values.empty? && relation.select_values.empty?
        end
        private_class_method :twice?, :steps, :alike?, :classes, :relations, :whole?
      end
    end
  end
end
