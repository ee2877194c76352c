# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Whether ActiveRecord finds the same for many records at once as each record would find by itself, which is the truth here.
      #
      #   EagerLoading.same?(rows, User, :roles)            # => true
      #   EagerLoading.same?(rows, User, :two_last_logins)  # => false: LIMIT
      #
      # Preloading has a LIMIT count all records, of a to-one association and on the way to the related ones too; cannot group; loses what
      # a SELECT leaves without its key, and the DISTINCT of what is passed on the way; compares keys of different types by their texts;
      # where several scopes on the way have an order, takes another one of them first; and where the way passes a table twice, knows
      # which of the two a default scope is of.
      module EagerLoading
        module_function

        # @param adapter [ActiveRecordRows] of the records' table
        # @param model [Class] of the records
        # @param name [Symbol] of an association
        # @param related [Array<Class>] of a polymorphic belongs_to: those that the records name; not needed for any other
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

        # The association itself and those that it goes through, each with the model that it is of.
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

        # @return [Array<ActiveRecord::Relation>, nil] what the step's scopes make; nil where only a record can say
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
