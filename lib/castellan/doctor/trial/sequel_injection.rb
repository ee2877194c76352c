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
            return super unless injection && block
            return self if SequelInjection.at_once(injection, self) { |rows| rows.each(&block) }
            return self if SequelInjection.declared(self) { |records| records.each(&block) }
            return super unless SequelInjection.streamed?(injection, self)

            all.each(&block)
            self
          end

          def with_sql_each(sql, &block)
            injection = Injection.current
            return super unless injection && block
            return self if SequelInjection.at_once(injection, self, sql) { |rows| rows.each(&block) }

            super
          end

          def single_record!
            SequelInjection.declared(self) { |records| return records.first }
            super
          end

          def empty?
            SequelInjection.reading(self, :any?) { |records| return records.empty? }
            SequelInjection.declared(self) { |records| return records.empty? }
            super
          end

          def get(column = nil, &block)
            SequelInjection.declared(self) { |records| return records.first&.[](column) } if column.is_a?(Symbol)
            super
          end

          %i[select_map select_order_map].each do |name|
            define_method(name) do |column = nil, &block|
              SequelInjection.declared(self) { |records| return records.map { |record| record[column] } } if column.is_a?(Symbol)
              super(column, &block)
            end
          end

          %i[sum min max].each do |name|
            define_method(name) do |*arguments, &block|
              SequelInjection.reading(self, :calculate) { |records| return Calculation.of(records, name, *arguments) } if arguments.one?
              super(*arguments, &block)
            end
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

        # Prepended to the class of Sequel::Model: a look-up by primary key goes past the methods above.
        module LookUps
          private

          def primary_key_lookup(key)
            injection = Injection.current
            return super unless injection&.at_once? && @fast_pk_lookup_sql

            dataset.with_sql_first(dataset.literal_append(@fast_pk_lookup_sql.dup, key))
          end
        end

        # What the database would have answered, of records that are there.
        module Calculation
          # @return [Object, nil]
          def self.of(records, name, column) = records.filter_map { |record| record[column] }.public_send(name)
        end
        private_constant :Calculation

        class << self
          # Prepends the hooks where the library is loaded.
          def prepare
            return unless defined?(Sequel::Dataset)

            Sequel::Dataset.prepend(Datasets) unless Sequel::Dataset.include?(Datasets)
            return if !defined?(Sequel::Model) || Sequel::Model.singleton_class <= LookUps

            Sequel::Model.singleton_class.prepend(LookUps) unless Sequel::Model.frozen?
          end

          # Yields what was asked for at once, as records or rows.
          # @return [Boolean]
          def at_once(injection, dataset, sql = nil)
            return false unless injection.at_once?

            sql ||= dataset.select_sql
            one = sql.is_a?(String) && injection.at_once(sql) or return false
            rows = injection.answering { one.column ? looked_up(one, dataset, sql) : one.keep(sql) { rows_of(dataset, sql) } }
            return false unless rows

            yield rows.map { |row| dataset.row_proc ? dataset.row_proc.call(row.dup) : row.dup }
            true
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
              trees.map(&:first).each { |tree| load(model, found, tree) } if found.size > 1 # one has no siblings
              found
            end
          end

          # Yields the records of an association that the fix declares, where they are read here instead of this dataset's.
          # @return [Boolean]
          def declared(dataset)
            injection = Injection.current or return false
            owner, name = walked(dataset)
            way = owner && injection.way(owner.class, name)
            return false unless way && owner.associations.key?(way) && dataset.row_proc

            yield owner.associations[way].then { |found| found.is_a?(Array) ? found : [found].compact }
            true
          end

          # Yields the loaded records of an association that is read here in this way.
          def reading(dataset, way)
            injection = Injection.current or return
            owner, name = walked(dataset)
            yield owner.associations[name] if owner&.associations&.key?(name) && injection.way(owner.class, name) == way
          end

          private

          def looked_up(one, dataset, sql)
            key = AtOnce::KEY.to_sym
            one.answer(sql, ->(text, _values) { text }) do |all|
              together = dataset.db.fetch(all)
              rows = together.all
              one.columns = together.columns - [key]
              rows.map { |row| [dataset.literal(row[key]), row.except(key)] }
            end
          end

          def rows_of(dataset, sql) = dataset.db.fetch(sql).all

          # Rows of an eager graph become records only after they were read.
          def model_of(dataset)
            dataset.model if dataset.respond_to?(:model) && (dataset.row_proc || dataset.opts[:eager_graph])
          end

          def walked(dataset)
            reflection = dataset.opts[:association_reflection]
            [dataset.opts[:model_object], reflection[:name]] if reflection && dataset.opts[:model_object]
          end

          # What is there already is not loaded again.
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

          # Sequel writes nothing where Castellan writes an empty tree.
          def eager(tree) = tree.transform_values { |rest| rest.empty? ? nil : eager(rest) }
        end
      end
    end
  end
end
