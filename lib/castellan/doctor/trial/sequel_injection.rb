# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Hooks an {Injection} into Sequel, at the first trial. Without a trial the hooks do nothing.
      #
      #   SequelInjection.prepare
      #
      # Loads associations eagerly after the records, as Sequel does, so that no dataset changes. `each` reads
      # all records first, as the fix does.
      module SequelInjection
        # Prepended to Sequel::Dataset.
        module Datasets
          def each(&block)
            injection = Injection.current
            return super unless injection && block && SequelInjection.preloads(injection, self).any?

            all.each(&block)
            self
          end

          def single_record!
            records = SequelInjection.chosen(self)
            records ? records.first : super
          end

          private

          def _all(block)
            injection = Injection.current
            return super unless injection

            records = SequelInjection.around(injection, self) { super(nil) { |found| yield found } }
            block ? records.each(&block) : records
          end
        end

        class << self
          # Prepends the hooks if Sequel is loaded.
          def prepare
            Sequel::Dataset.prepend(Datasets) if defined?(Sequel::Dataset)
          end

          # @return [Array<Preload>] preloads for the records of a dataset; rows of an eager graph become
          #   records only after all are read
          def preloads(injection, dataset)
            records = dataset.respond_to?(:model) && (dataset.row_proc || dataset.opts[:eager_graph])
            records ? injection.preloads(dataset.model) : []
          end

          # Runs the block and applies the preloads to the records that it loads, unless it loads only one.
          # @return what the block returns
          def around(injection, dataset)
            preloads = preloads(injection, dataset)
            found = injection.loading { yield }
            injection.preload(self, found, preloads) if found.size > 1
            found
          end

          # @return [Array, nil] records chosen for the association of this dataset
          def chosen(dataset)
            injection = Injection.current or return
            reflection, owner = dataset.opts.values_at(:association_reflection, :model_object)
            injection.chosen(owner, reflection[:name]) if reflection && owner && dataset.row_proc
          end

          # Skips associations that are already loaded.
          # (see ActiveRecordInjection.load)
          def load(records, tree)
            return if records.empty?

            model = records.first.class
            tree.each do |name, rest|
              if records.all? { |record| record.associations.key?(name) }
                load(records.flat_map { |record| targets(record, name) }.uniq, rest)
              else
                model.dataset.send(:eager_load, records, eager({ name => rest }), model)
              end
            end
          end

          # (see ActiveRecordInjection.targets)
          def targets(owner, name) = Array(owner.associations[name])

          # (see ActiveRecordInjection.association)
          def association(owner, name)
            reflection = owner.association_reflection(name)
            { model: reflection.associated_class, key: reflection[:key], conditions: {},
              held: reflection[:primary_key] || reflection.primary_key }
          end

          private

          # Sequel expects nil for an empty tree.
          def eager(tree) = tree.transform_values { |rest| rest.empty? ? nil : eager(rest) }
        end
      end
    end
  end
end
