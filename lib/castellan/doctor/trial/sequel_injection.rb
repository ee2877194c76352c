# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Hooks an {Injection} into Sequel at the first trial. The hooks do nothing outside of a trial.
      #
      #   SequelInjection.prepare
      #
      # Like Sequel, loads associations after the records, so that the dataset itself does not change. `each`
      # reads all records first, as with the real fix.
      module SequelInjection
        # For Sequel::Dataset, and for that of PostgreSQL, where the gem sequel_pg replaces `each`.
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

          # Without this, `each` would call `all` again.
          def _all(block)
            injection = Injection.current
            injection ? super { |records| injection.loading { yield records } } : super
          end
        end

        # For Sequel::Model::Associations::DatasetMethods.
        module Loads
          private

          # After `all` has read the records.
          def post_load(records)
            injection = Injection.current or return super

            SequelInjection.around(injection, self, records) { super }
          end
        end

        class << self
          def prepare
            return unless defined?(Sequel::Dataset)

            Sequel::Dataset.prepend(Datasets)
            prepend_to_postgres
            Sequel::Model::Associations::DatasetMethods.prepend(Loads) if defined?(Sequel::Model)
          end

          # An eager graph has no row_proc, because it builds the records after it has read all rows.
          # @return [Array<Preload>] the preloads for the records of a dataset
          def preloads(injection, dataset)
            records = dataset.respond_to?(:model) && (dataset.row_proc || dataset.opts[:eager_graph])
            records ? injection.preloads(dataset.model) : []
          end

          # Runs the block, which loads associations eagerly, and applies the preloads to the records, unless there is
          # only one.
          def around(injection, dataset, records, &block)
            preloads = preloads(injection, dataset)
            injection.loading(&block)
            injection.preload(self, records, preloads) if records.size > 1
          end

          # @return [Array, nil] the records that a declared fix chose for the association of this dataset
          def chosen(dataset)
            injection = Injection.current or return
            reflection, owner = dataset.opts.values_at(:association_reflection, :model_object)
            injection.chosen(owner, reflection[:name]) { dataset.sql } if reflection && owner && dataset.row_proc
          end

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

          # (see ActiveRecordInjection.first_of_each)
          def first_of_each(found, key, scope)
            return found unless Detect::SequelModels.first_of_each?(scope) && found.supports_distinct_on?

            found.distinct(key).order_prepend(key)
          end

          # (see ActiveRecordInjection.association)
          def association(owner, name)
            reflection = owner.association_reflection(name)
            { model: reflection.associated_class, key: reflection[:key], conditions: {},
              held: reflection[:primary_key] || reflection.primary_key }
          end

          private

          # `freeze` of a database freezes the class of its datasets.
          def prepend_to_postgres
            Sequel::Postgres::Dataset.prepend(Datasets) if defined?(Sequel::Postgres::Dataset) && !Sequel::Postgres::Dataset.frozen?
          end

          # Sequel expects nil for an empty tree.
          def eager(tree) = tree.transform_values { |rest| rest.empty? ? nil : eager(rest) }
        end
      end
    end
  end
end
