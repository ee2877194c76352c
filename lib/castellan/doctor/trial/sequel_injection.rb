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
            return super unless injection && block

            records = SequelInjection.chosen(injection, self) || (all if SequelInjection.preloads(injection, self).any?)
            return super unless records

            records.each(&block)
            self
          end

          def single_record!
            records = SequelInjection.chosen(Injection.current, self)
            records ? records.first : super
          end

          def get(column = nil, &block)
            records = SequelInjection.chosen(Injection.current, self) if column.is_a?(Symbol)
            records ? records.first&.[](column) : super
          end

          %i[select_map select_order_map].each do |name|
            define_method(name) do |column = nil, &block|
              records = SequelInjection.chosen(Injection.current, self) if column.is_a?(Symbol)
              records ? records.map { |record| record[column] } : super(column, &block)
            end
          end

          private

          def _all(block)
            injection = Injection.current
            return super unless injection

            records = SequelInjection.chosen(injection, self)
            records ||= SequelInjection.around(injection, self) { super(nil) { |found| yield found } }
            block ? records.each(&block) : records
          end
        end

        class << self
          # Prepends the hooks if Sequel is loaded.
          def prepare
            Sequel::Dataset.prepend(Datasets) if defined?(Sequel::Dataset) && !Sequel::Dataset.include?(Datasets)
          end

          # @return [Array<Preload>] preloads for the records of a dataset
          def preloads(injection, dataset)
            model = model_of(dataset)
            model ? injection.preloads(model) : []
          end

          # Runs the block, which loads records, and applies the preloads to them.
          # @return what the block returns
          def around(injection, dataset)
            preloads = preloads(injection, dataset)
            injection.loading do
              found = yield
              # One record has no siblings to preload with.
              preloads.each { |preload| preload(injection, model_of(dataset), found, preload) } if found.size > 1
              found
            end
          end

          # @return [Array, nil] records chosen for the association of this dataset
          def chosen(injection, dataset)
            reflection = dataset.opts[:association_reflection]
            owner = dataset.opts[:model_object]
            injection.chosen(owner, reflection[:name])&.dup if injection && reflection && owner && dataset.row_proc
          end

          private

          # Rows of an eager graph become records only after all are read.
          def model_of(dataset)
            dataset.model if dataset.respond_to?(:model) && (dataset.row_proc || dataset.opts[:eager_graph])
          end

          def preload(injection, model, records, preload)
            return load(model, records, preload.tree) unless preload.declaration

            *path, _name = Detect::Preload.names(preload.tree)
            load(model, records, Detect::Preload.path(path))
            owners = path.reduce(records) { |all, name| all.flat_map { |record| record.associations[name] }.compact }
            choose(injection, preload, owners)
          end

          def choose(injection, preload, owners)
            reflection = Object.const_get(preload.declaration[:in]).association_reflection(preload.declaration[:association])
            injection.choose(preload, owners) do |_preload, all|
              held, key = [reflection[:primary_key] || reflection.primary_key, reflection[:key]]
              found = reflection.associated_class.where(key => all.map { |owner| owner[held] })
              found = found.instance_eval(preload.declaration[:scope], __FILE__, __LINE__) unless preload.declaration[:scope].empty?
              found = found.all.group_by { |record| record[key] }
              all.to_h { |owner| [owner, found.fetch(owner[held], [])] }.compare_by_identity
            end
          end

          # Skips associations that are already loaded.
          def load(model, records, tree)
            tree.each do |name, rest|
              if records.all? { |record| record.associations.key?(name) }
                load_further(model, records, name, rest) if rest.any?
              else
                model.dataset.send(:eager_load, records, eager({ name => rest }), model)
              end
            end
          end

          def load_further(model, records, name, tree)
            children = records.flat_map { |record| record.associations[name] }.compact.uniq
            load(model.association_reflection(name).associated_class, children, tree)
          end

          # Sequel expects nil for an empty tree.
          def eager(tree) = tree.transform_values { |rest| rest.empty? ? nil : eager(rest) }
        end
      end
    end
  end
end
