# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Whether ActiveRecord finds the same for many records at once as each record would find by itself, which is the truth here.
      #
      #   EagerLoading.same?(User, :roles)            # => true
      #   EagerLoading.same?(User, :two_last_logins)  # => false: LIMIT
      #
      # Preloading has a LIMIT count all records, on the way to the related ones too, where a lazy load ignores it; cannot group; loses
      # what a SELECT leaves without its key; where several scopes on the way have an order, takes another one of them first; and where
      # the way passes a table twice, knows which of the two a default scope is of.
      module EagerLoading
        module_function

        # @param model [Class] of the records
        # @param name [Symbol] of an association
        # @return [Boolean]
        def same?(model, name)
          reflection = model.reflect_on_association(name)
          steps = steps(reflection)
          relations = steps.filter_map { |step| relation(step) if scoped?(step) }
          return true if relations.empty?
          return false if relations.include?(:of_the_owner) || !relations.all? { |relation| whole?(relation, steps) }

          steps.one? || (relations.count { |relation| relation.order_values.any? } < 2 && !twice?(reflection))
        end

        def twice?(reflection)
          tables = reflection.chain.map { |link| link.klass.table_name }
          tables != tables.uniq
        end

        # The associations that it goes through, and itself.
        def steps(reflection)
          return [reflection] unless reflection.through_reflection?

          [reflection, *steps(reflection.through_reflection), *steps(reflection.source_reflection)]
        end

        def scoped?(step)
          step.scope || !(step.polymorphic? || step.klass.default_scopes.empty?)
        end

        # One that only a record's own class can say is as good as one that takes the owner.
        def relation(step)
          return step.klass.all unless step.scope
          return :of_the_owner if step.scope.arity != 0 || step.polymorphic?

          step.klass.all.instance_exec(&step.scope)
        end

        # The LIMIT of a to-one association is 1, for each record.
        def whole?(relation, steps)
          limited = relation.offset_value || (relation.limit_value && (steps.size > 1 || steps.first.collection?))
          !limited && !relation.distinct_value && relation.group_values.empty? && relation.select_values.empty?
        end
        private_class_method :twice?, :steps, :scoped?, :relation, :whole?
      end
    end
  end
end
