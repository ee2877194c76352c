# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Hooks an {Injection} into ActiveRecord at the first trial. The hooks do nothing outside of a trial.
      #
      #   ActiveRecordInjection.prepare
      #
      # Loads a copy of the relation with the preloads, so that the relation itself does not change. Records
      # that no relation loads are preloaded afterwards.
      module ActiveRecordInjection
        # For ActiveRecord::Relation.
        module Relations
          def load(&block)
            injection = Injection.current
            return super if injection.nil? || (loaded? && !scheduled?)
            return ActiveRecordInjection.scheduled(injection, self) { super } if scheduled?

            records = ActiveRecordInjection.chosen(self) || ActiveRecordInjection.preloaded(injection, self, &block)
            return super unless records

            load_records(records)
            self
          end
        end

        # For ActiveRecord::Associations::Association.
        module Walks
          private

          def find_target(...)
            injection = Injection.current
            return super unless injection && klass

            found = injection.loading { super }
            injection.preload(ActiveRecordInjection, found, injection.preloads(klass)) if found.is_a?(Array) && found.size > 1
            found
          end
        end

        class << self
          def prepare
            return unless defined?(ActiveRecord::Base)

            ActiveRecord::Relation.prepend(Relations)
            ActiveRecord::Associations::Association.prepend(Walks)
          end

          # @return [Array, nil] the records that a declared fix chose for the association of this relation
          def chosen(relation)
            return unless (injection = Injection.current) && relation.respond_to?(:proxy_association)

            association = relation.proxy_association
            injection.chosen(association.owner, association.reflection.name) { relation.to_sql }
          end

          # Preloads for a relation whose statement `load_async` has sent.
          # @return [ActiveRecord::Relation]
          def scheduled(injection, relation, &block)
            injection.loading(&block)
            injection.preload(self, relation.records, injection.preloads(relation.klass))
            relation
          end

          # Loads a copy of the relation, with the preloads after the application's own.
          # @return [Array, nil] nil if there is nothing to preload
          def preloaded(injection, relation, &block)
            return if relation.is_a?(ActiveRecord::Associations::CollectionProxy)

            preloads = injection.preloads(relation.klass)
            return if preloads.empty?

            plain, declared = preloads.partition { |preload| preload.declaration.nil? }
            trees = plain.flat_map { |preload| Detect::Preload.list(preload.tree) }
            records = injection.loading { preloading(relation, trees).load(&block).records }
            injection.preload(self, records, declared)
            records
          end

          # Nested associations come before the application's own preload of the first of them, as if in place of it.
          def preloading(relation, trees)
            return relation.spawn if trees.empty?

            own = relation.preload_values
            plain = own | relation.includes_values
            nested, others = trees.partition { |tree| tree.is_a?(Hash) && plain.intersect?(tree.keys) }
            nested.any? ? relation.except(:preload).preload(*nested, *own, *others) : relation.preload(*others)
          end

          # @param tree [Hash] see {Detect::Preload}
          def load(records, tree)
            Detect::Preload.list(tree).each do |names|
              ActiveRecord::Associations::Preloader.new(records: records, associations: names).call
            end
          end

          # @return [Array] the loaded records of an association
          def targets(owner, name) = Array(owner.association(name).target)

          # @return [Object] the relation or dataset, reduced to what the declared association loads
          def first_of_each(found, _key, _scope) = found

          # @return [Hash] the model, its key, the owner's column, and more conditions
          def association(owner, name)
            reflection = owner.reflect_on_association(name)
            type = reflection.type ? { reflection.type.to_sym => reflection.active_record.polymorphic_name } : {}
            { model: reflection.klass, key: reflection.foreign_key.to_s, held: reflection.active_record_primary_key.to_s,
              conditions: type }
          end
        end
      end
    end
  end
end
