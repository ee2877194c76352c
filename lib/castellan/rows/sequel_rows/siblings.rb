# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Makes the associations of Sequel's models ask {Together} before they query.
      #
      #   Siblings.attach    # Together.render does
      #
      # As Sequel's own plugin tactical_eager_loading, but for the rendering of a document alone, and for records
      # however they were loaded.
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
          # Prepends the module once, for the life of the process. Without a document it reads a fiber-local variable.
          def attach
            ::Sequel::Model.prepend(Targets) unless ::Sequel::Model < Targets
          end

          # @return [Boolean]
          def record?(object)
            object.class < ::Sequel::Model
          end

          # @yieldparam name [Symbol] an association that is loaded
          # @yieldparam related [Array<Object>]
          def each_loaded(record)
            record.associations.each { |name, related| yield name, list(related) }
          end

          # @yield queries, for this record alone
          # @return [Array<Object>, Object, nil] what `_load_associated_objects` returns
          def target(record, reflection, together)
            unless record.new?
              found = together.answer(record, reflection[:name]) { |siblings| load(record, reflection, siblings, together) }
              return found unless Together::NONE.equal?(found)
            end

            yield.tap { |found| together.add(list(found)) }
          end

          private

          # Array() would make a hash of values of a record.
          def list(found)
            found.is_a?(Array) ? found : [found].compact
          end

          def load(record, reflection, siblings, together)
            owners = siblings.select { |one| owner?(one, reflection) }
            return if owners.size < 2 || !same?(record.class, reflection)

            name = reflection[:name]
            copies = owners.map { |owner| owner.class.call(owner.values) }
            record.class.dataset.send(:eager_load, copies, { name => {} }, record.class)
            targets = copies.map { |copy| copy.associations[name] }
            together.add(targets.flat_map { |target| list(target) })
            answers(reflection, owners, targets)
          end

          # Where records refer back to one owner, owners cannot share a record.
          def answers(reflection, owners, targets)
            back = reflection[:type] == :many_to_one && reflection.set_reciprocal_to_self?
            counts = back ? targets.group_by(&:__id__).transform_values(&:size) : {}
            owners.zip(targets).each_with_object({}.compare_by_identity) do |(owner, target), answers|
              answers[owner] = target unless target && counts.fetch(target.__id__, 1) > 1
            end
          end

          def owner?(record, reflection)
            record?(record) && !record.new? && !record.associations.key?(reflection[:name]) &&
              record.class.association_reflection(reflection[:name]).equal?(reflection)
          end

          # Sequel calls `after_load` when objects are assigned, once more for those that were loaded eagerly.
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
