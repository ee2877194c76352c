# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Hooks an {Injection} into ActiveRecord, at the first trial. Without a trial the hooks do nothing.
      #
      #   ActiveRecordInjection.prepare
      #
      # Loads a copy of the relation with preloads, so that no relation changes. Records that no relation
      # loaded are preloaded afterwards.
      module ActiveRecordInjection
        # Prepended to ActiveRecord::Relation.
        module Relations
          def load(&block)
            injection = Injection.current
            return super if injection.nil? || loaded? || scheduled?

            records = ActiveRecordInjection.chosen(injection, self) || ActiveRecordInjection.preloaded(injection, self, &block)
            return super unless records

            load_records(records)
            self
          end

          def pluck(*columns)
            records = ActiveRecordInjection.chosen(Injection.current, self)
            records ? records.pluck(*columns) : super
          end

          def ids
            records = ActiveRecordInjection.chosen(Injection.current, self)
            records ? records.map(&:id) : super
          end
        end

        # Prepended to ActiveRecord::Associations::Association.
        module Walks
          private

          def find_target(...)
            injection = Injection.current
            return super unless injection && klass

            found = injection.loading { super }
            ActiveRecordInjection.preload(injection, found, injection.preloads(klass)) if found.is_a?(Array) && found.size > 1
            found
          end
        end

        class << self
          # Prepends the hooks if ActiveRecord is loaded.
          def prepare
            return unless defined?(ActiveRecord::Base)

            ActiveRecord::Relation.prepend(Relations) unless ActiveRecord::Relation.include?(Relations)
            association = ActiveRecord::Associations::Association
            association.prepend(Walks) unless association.include?(Walks)
          end

          # @return [Array, nil] records chosen for the association of this relation
          def chosen(injection, relation)
            return unless injection && relation.respond_to?(:proxy_association)

            association = relation.proxy_association
            injection.chosen(association.owner, association.reflection.name)&.dup
          end

          # Loads a copy of the relation with the preloads added; the application's own preloads keep their
          # order.
          # @return [Array, nil] records; nil if there is nothing to preload
          def preloaded(injection, relation, &block)
            return if relation.is_a?(ActiveRecord::Associations::CollectionProxy)

            preloads = injection.preloads(relation.klass)
            return if preloads.empty?

            plain, declared = preloads.partition { |preload| preload.declaration.nil? }
            trees = plain.flat_map { |preload| Detect::Preload.list(preload.tree) }
            records = injection.loading { (trees.any? ? relation.preload(*trees) : relation.spawn).load(&block).records }
            preload(injection, records, declared)
            records
          end

          # @param preloads [Array<Preload>] preloads for loaded records
          def preload(injection, records, preloads)
            injection.loading do
              preloads.each do |preload|
                path = Detect::Preload.names(preload.tree) if preload.declaration
                load(records, path ? Detect::Preload.path(path[0...-1]) : preload.tree)
                choose(injection, preload, path[0...-1].reduce(records) { |owners, name| targets(owners, name) }) if path
              end
            end
          end

          private

          def load(records, tree)
            Detect::Preload.list(tree).each { |names| ActiveRecord::Associations::Preloader.new(records: records, associations: names).call }
          end

          def targets(owners, name) = owners.flat_map { |owner| Array(owner.association(name).target) }

          def choose(injection, preload, owners)
            reflection = Object.const_get(preload.declaration[:in]).reflect_on_association(preload.declaration[:association])
            injection.choose(preload, owners) do |_preload, all|
              key, held = [reflection.foreign_key, reflection.active_record_primary_key].map(&:to_s)
              found = reflection.klass.where(key => all.map { |owner| owner[held] })
              found = found.where(reflection.type => reflection.active_record.polymorphic_name) if reflection.type
              found = found.instance_eval(preload.declaration[:scope], __FILE__, __LINE__) unless preload.declaration[:scope].empty?
              found = found.to_a.group_by { |record| record[key] }
              all.to_h { |owner| [owner, found.fetch(owner[held], [])] }.compare_by_identity
            end
          end
        end
      end
    end
  end
end
