# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # The hooks of an {Injection} in ActiveRecord. Prepended at the first trial of a process; while none runs they ask one variable.
      #
      #   ActiveRecordInjection.prepare
      #
      # A copy of a relation is loaded in its place, so that none is changed; records that come of no relation are preloaded when they are
      # there.
      module ActiveRecordInjection
        # Prepended to ActiveRecord::Relation.
        module Relations
          def load(&block)
            injection = Injection.current
            return super if injection.nil? || (loaded? && !scheduled?)
            return self if ActiveRecordInjection.declared(injection, self) { |records| load_records(records) }

            added = ActiveRecordInjection.added(injection, self)
            return load_records(ActiveRecordInjection.with(self, added, injection, &block)) && self if added.any?

            ActiveRecordInjection.around(injection, klass) { super.records }
            self
          end

          def calculate(operation, column_name)
            ActiveRecordInjection.reading(self, :calculate) { |records| return Calculation.of(records, operation, column_name) }
            super
          end

          def exists?(conditions = :none)
            ActiveRecordInjection.reading(self, :any?) { |records| return records.any? } if conditions == :none
            injection = Injection.current
            ActiveRecordInjection.declared(injection, self) { |records| return records.any? } if injection
            super
          end

          def pluck(*columns)
            injection = Injection.current
            ActiveRecordInjection.declared(injection, self) { |records| return records.pluck(*columns) } if injection
            super
          end

          def ids
            injection = Injection.current
            ActiveRecordInjection.declared(injection, self) { |records| return records.map(&:id) } if injection
            super
          end

          def find_each(**options, &block)
            ActiveRecordInjection.reading(self, :each) { |records| return records.each(&block) } if options.empty? && block
            super
          end
        end

        # Prepended to ActiveRecord::Querying, for records of SQL that the application wrote.
        module Queries
          def find_by_sql(...)
            injection = Injection.current
            injection ? ActiveRecordInjection.around(injection, self) { super } : super
          end
        end

        # Prepended to ActiveRecord::Associations::Association.
        module Walks
          private

          def find_target(...)
            injection = Injection.current
            return super unless injection && klass

            ActiveRecordInjection.around(injection, klass) { super }
          end
        end

        # Prepended to ActiveRecord's adapters, for look-ups that are answered at once.
        module Statements
          def select_all(arel, name = nil, binds = [], preparable: nil, async: false, **)
            injection = Injection.current
            return super if async || !injection&.at_once?

            sql, bound = to_sql_and_binds(arel.is_a?(ActiveRecord::Relation) ? arel.arel : arel, binds, preparable)
            at_once = injection.at_once(sql) or return super
            literal = ->(text, values) { AtOnce.literal(text, values) { |value| ActiveRecordInjection.quoted(self, value) } }
            text = literal.call(sql, bound)
            return at_once.keep(text) { super(text, name, []) }.dup if at_once.column.nil?

            rows = at_once.answer(text, literal) { |all| ActiveRecordInjection.keyed(self, at_once, super(all, name, [])) } or return super
            ActiveRecord::Result.new(at_once.columns, rows, at_once.types)
          end
        end

        # What the database would have answered, of records that are there.
        module Calculation
          METHODS = { sum: :sum, minimum: :min, maximum: :max }.freeze

          module_function

          # @return [Object, nil]
          def of(records, operation, column)
            return records.size if operation == :count

            records.filter_map { |record| record.public_send(column) }.public_send(METHODS.fetch(operation))
          end
        end
        private_constant :Calculation

        class << self
          # Prepends the hooks where the library is loaded.
          def prepare
            return unless defined?(ActiveRecord::Base)

            ActiveRecord::Relation.prepend(Relations) unless ActiveRecord::Relation.include?(Relations)
            ActiveRecord::Querying.prepend(Queries) unless ActiveRecord::Querying.include?(Queries)
            association = ActiveRecord::Associations::Association
            association.prepend(Walks) unless association.include?(Walks)
            adapter = ActiveRecord::ConnectionAdapters::AbstractAdapter
            adapter.prepend(Statements) unless adapter.include?(Statements)
          end

          # @return [String] a value that is bound to a statement, as it is written in one
          def quoted(connection, value)
            connection.quote(value.respond_to?(:value_for_database) ? value.value_for_database : value)
          end

          # Takes the column away that says for which value a row was asked.
          # @return [Array<Array(String, Array)>] that value, as it is written in SQL, and the row
          def keyed(connection, at_once, result)
            at_once.columns = result.columns.drop(1)
            at_once.types = result.column_types.to_h { |name, type| [name.is_a?(Integer) ? name - 1 : name, type] }.except(-1, AtOnce::KEY)
            type = at_once.model.type_for_attribute(at_once.column)
            result.rows.map { |key, *row| [connection.quote(type.serialize(type.deserialize(key))), row] }
          end

          # What can be added to a relation, as the fix says. One that is on its way already, or the association itself, is preloaded when
          # it is there.
          # @return [Array<Symbol, Hash>]
          def added(injection, relation)
            return [] if relation.scheduled? || relation.is_a?(ActiveRecord::Associations::CollectionProxy)

            injection.preloads(relation.klass).select { |_tree, only| only.nil? }.flat_map { |tree, _only| Detect::Preload.list(tree) }
          end

          # Loads a copy of the relation, to which the preloads were added; other ones of the application keep their order.
          # @return [Array]
          def with(relation, added, injection, &block)
            injection.loading { relation.preload(*added).load(&block).records }
          end

          # Runs the block, which loads records, and preloads what there is to preload for them.
          # @return what the block returned
          def around(injection, model)
            trees = injection.preloads(model)
            injection.loading do
              found = yield
              trees.each { |tree, only| preload(found, tree, only) } if found.is_a?(Array) && found.size > 1 # one has no siblings
              found
            end
          end

          # Yields the records of an association that the fix declares, where they are read here instead of this relation's.
          # @return [Boolean]
          def declared(injection, relation)
            association = association_of(relation) or return false
            way = injection.way(association.owner.class, association.reflection.name)
            return false unless way.is_a?(Symbol) && association.owner.class._reflect_on_association(way)

            yield Array(association.owner.association(way).load_target).dup
            true
          end

          # Yields the loaded records of an association that is read here in this way.
          def reading(relation, way)
            injection = Injection.current or return
            association = association_of(relation)
            return unless relation.is_a?(ActiveRecord::Associations::CollectionProxy) && association.loaded?

            yield association.target if injection.way(association.owner.class, association.reflection.name) == way
          end

          private

          def association_of(relation)
            relation.proxy_association if relation.respond_to?(:proxy_association)
          end

          def preload(records, tree, only)
            return preload_alone(records, *tree.first, only) if only

            Detect::Preload.list(tree).each do |associations|
              ActiveRecord::Associations::Preloader.new(records: records, associations: associations).call if records.any?
            end
          end

          # Follows a path to the last association, which only some records have.
          def preload_alone(records, name, rest, only)
            return preload(records.grep(only), { name => {} }, nil) if rest.empty?

            preload(records, { name => {} }, nil)
            preload_alone(records.flat_map { |record| Array(record.association(name).target) }, *rest.first, only)
          end
        end
      end
    end
  end
end
