# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Lets Sequel's associations use the results in {Together} instead of querying.
      #
      #   Siblings.attach    # Together.render calls it
      #
      # Works like Sequel's plugin tactical_eager_loading, but only while a document is rendered, and for
      # all records however they were loaded.
      module Siblings
        # Prepended to Sequel::Model.
        module Targets
          private

          def _load_associated_objects(reflection, options = {})
            together = (Together.current if options.empty?) or return super

            Siblings.target(self, reflection, together) { super }
          end
        end

        class << self
          # (see ActiveRecordRows::Siblings#attach)
          def attach
            ::Sequel::Model.prepend(Targets) unless ::Sequel::Model < Targets
          end

          def record?(object) = object.class < ::Sequel::Model

          # (see ActiveRecordRows::Siblings#each_loaded)
          def each_loaded(record) = record.associations.each { |name, related| yield name, list(related) }

          # @yield loads the association of this record alone
          # @return [Array<Object>, Object, nil] the result of `_load_associated_objects`
          def target(record, reflection, together)
            unless record.new? || SequelRows.other_server(record)
              found = together.answer(record, reflection[:name]) { |siblings| load(record, reflection, siblings, together) }
              return found unless Together::NONE.equal?(found)
            end

            yield.tap { |found| together.add(list(found)) }
          end

          private

          # Array() would turn a record into its values.
          def list(found) = found.is_a?(Array) ? found : [found].compact

          def load(record, reflection, siblings, together)
            owners = siblings.select { |one| owner?(one, reflection) }
            return if owners.size < 2 || !same?(record.class, reflection)

            name = reflection[:name]
            copies = owners.map { |owner| owner.class.call(owner.values) }
            record.class.dataset.send(:eager_load, copies, { name => {} }, record.class)
            targets = copies.map { |copy| copy.associations[name] }
            together.add(targets.flat_map { |target| list(target) })
            Together.answers(owners, targets, back: reflection[:type] == :many_to_one && reflection.set_reciprocal_to_self?)
          end

          def owner?(record, reflection)
            record?(record) && !record.new? && !record.associations.key?(reflection[:name]) &&
              record.class.association_reflection(reflection[:name]).equal?(reflection) && !SequelRows.other_server(record)
          end

          # Sequel calls `after_load` when objects are assigned, so eagerly loaded objects would run it twice.
          def same?(model, reflection)
            return false if reflection[:limit] || reflection[:after_load]&.any?

            Rows.for(model).instances.loads_at_once?(reflection[:name])
          rescue DeclarationError
            false
          end
        end
      end
    end
  end
end
