# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # The hooks of an {Injection} in Sequel. Prepended at the first trial of a process; while none runs they ask one variable.
      #
      #   SequelInjection.prepare
      #
      # Records are loaded eagerly after they were loaded, as Sequel itself does it, so that no dataset is changed. Those that come
      # one by one from `each` are read by `all` first, as the fix says.
      module SequelInjection
        # Prepended to Sequel::Dataset.
        module Datasets
          def each(&block)
            injection = Injection.current
            return super unless injection && block && SequelInjection.streamed?(injection, self)

            all.each(&block)
            self
          end

          def single_record!
            SequelInjection.declared(self) { |records| return records.first }
            super
          end

          def count(*arguments, &block)
            SequelInjection.reading(self, :calculate) { |records| return records.size } if arguments.empty? && block.nil?
            super
          end

          private

          def _all(block)
            injection = Injection.current
            return super unless injection

            SequelInjection.declared(self) { |records| return records.each(&block || :itself) }
            records = SequelInjection.around(injection, self) { super(nil) { |found| yield found } }
            block ? records.each(&block) : records
          end
        end

        class << self
          # Prepends the hooks where the library is loaded.
          def prepare
            Sequel::Dataset.prepend(Datasets) if defined?(Sequel::Dataset) && !Sequel::Dataset.include?(Datasets)
          end

          # @return [Boolean] whether records of this dataset are to be preloaded and come one by one
          def streamed?(injection, dataset)
            model = model_of(dataset)
            model ? injection.preloads(model).any? : false
          end

          # Runs the block, which loads records, and loads eagerly what there is to load for them.
          # @return what the block returned
          def around(injection, dataset)
            model = model_of(dataset)
            trees = model ? injection.preloads(model) : []
            injection.loading do
              found = yield
              trees.each { |tree, _only| dataset.send(:eager_load, found, eager(tree), model) } if found.size > 1 # one has no siblings
              found
            end
          end

          # Yields the records of an association that the fix declares, where they are read here instead of this dataset's.
          def declared(dataset)
            injection = Injection.current or return
            owner, name = walked(dataset)
            way = owner && injection.way(owner.class, name)
            return unless way && owner.associations.key?(way)

            yield Array(owner.associations[way])
          end

          # Yields the loaded records of an association that is read here in this way.
          def reading(dataset, way)
            injection = Injection.current or return
            owner, name = walked(dataset)
            yield owner.associations[name] if owner&.associations&.key?(name) && injection.way(owner.class, name) == way
          end

          private

          # Rows of an eager graph become records only after they were read.
          def model_of(dataset)
            dataset.model if dataset.respond_to?(:model) && (dataset.row_proc || dataset.opts[:eager_graph])
          end

          def walked(dataset)
            reflection = dataset.opts[:association_reflection]
            [dataset.opts[:model_object], reflection[:name]] if reflection && dataset.opts[:model_object]
          end

          # Sequel writes nothing where Castellan writes an empty tree.
          def eager(tree) = tree.transform_values { |rest| rest.empty? ? nil : eager(rest) }
        end
      end
    end
  end
end
