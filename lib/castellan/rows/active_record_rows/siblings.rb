# frozen_string_literal: true

require_relative "grouped_query"

module Castellan
  module Rows
    class ActiveRecordRows
      # Makes the associations of ActiveRecord look into {Together} before they query.
      #
      #   Siblings.attach    # Together.render does
      #
      # Answers are preloaded into copies of the records, so that no association of a sibling changes. What a
      # lazy load would find otherwise than a preload (see {Instances#preloads_same?}) is left to the lazy load.
      module Siblings
        # Prepended to ActiveRecord::Associations::SingularAssociation and CollectionAssociation (7.1, 7.2).
        module Targets
          private

          def find_target
            together = Together.current or return super

            Siblings.target(self, together) { super }
          end
        end

        # The same where the method takes an option (8.0).
        module AsynchronousTargets
          private

          def find_target(async: false)
            together = (Together.current unless async) or return super

            Siblings.target(self, together) { super }
          end
        end

        # Prepended to ActiveRecord::Associations::CollectionAssociation.
        module Collections
          def size
            Siblings.answer(self, :counts) { super }
          end

          def empty?
            Siblings.answer(self, :counts) { return super }.zero?
          end

          def ids_reader
            Siblings.answer(self, :ids) { super }
          end
        end

        # Prepended to ActiveRecord::Associations::CollectionProxy.
        module Proxies
          def first(limit = nil)
            return super if limit

            Siblings.answer(proxy_association, :firsts, by_key: true) { super }
          end

          def count(column = nil, &block)
            return super if column || block

            Siblings.answer(proxy_association, :counts, queried: true) { super }
          end

          def exists?(conditions = :none)
            return super unless conditions == :none

            Siblings.answer(proxy_association, :counts, queried: true) { return super }.positive?
          end
        end

        class << self
          # Prepends the modules once, for the life of the process. Without a document they read a fiber-local variable.
          def attach
            return if @attached

            associations = ::ActiveRecord::Associations
            targets = associations::Association.instance_method(:find_target).arity.zero? ? Targets : AsynchronousTargets
            associations::SingularAssociation.prepend(targets)
            associations::CollectionAssociation.prepend(targets, Collections)
            associations::CollectionProxy.prepend(Proxies)
            @attached = true
          end

          def record?(object)
            object.class < ::ActiveRecord::Base
          end

          # @yieldparam name [Symbol] an association that is loaded
          def each_loaded(record)
            record.instance_variable_get(:@association_cache)&.each do |name, association|
              yield name, Array(association.target) if association.loaded?
            end
          end

          # @yield queries, for this record alone
          # @return [Array<Object>, Object, nil] what the association's `find_target` returns
          def target(association, together)
            if shared?(association)
              found = targets(association, together)
              return inverted(association, found) unless Together::NONE.equal?(found)
            end

            yield.tap { |found| together.add(Array(found)) }
          end

          # Answers a query about an association that is not loaded, and does not load it.
          # @param query [Symbol] a method of {GroupedQuery}
          # @yield queries, for this record alone
          # @param queried [Boolean] whether the method queries even if the association is loaded
          def answer(association, query, queried: false, **options)
            together = (Together.current if queried || !association.loaded?) or return yield
            return yield unless !association.null_scope? && shared?(association) &&
                                (queried || (association.target.empty? && !counted?(association, query)))

            found = together.answer(association.owner, [association.reflection.name, query], keep: true) do |siblings|
              grouped(association, siblings, query, together, **options)
            end
            found = ids_of_records(association, together) if Together::NONE.equal?(found) && query == :ids
            return yield if Together::NONE.equal?(found)

            association.set_inverse_instance(found) if found && query == :firsts
            found
          end

          private

          # Whether a counter cache answers without a query.
          def counted?(association, query)
            query == :counts && association.reflection.has_cached_counter?
          end

          def grouped(association, siblings, query, together, **options)
            owners = owners(association, siblings)
            return if owners.size < 2 || !same?(association)

            answers = GroupedQuery.for(association, owners)&.public_send(query, **options) or return
            together.add(answers.values.compact) if query == :firsts
            answers
          end

          # The ids of a through association, which no statement of their own reads.
          def ids_of_records(association, together)
            found = targets(association, together, keep: true)
            Together::NONE.equal?(found) ? found : found.pluck(*association.reflection.association_primary_key)
          end

          def targets(association, together, **keep)
            together.answer(association.owner, [association.reflection.name, association.klass], **keep) do |siblings|
              load(association, siblings, together)
            end
          end

          # Whether siblings may have an answer. A strict record raises as before; inside of `scoping` or
          # `unscoped` the same query has another answer.
          def shared?(association)
            owner = association.owner
            reflection = association.reflection
            !owner.new_record? && !owner.strict_loading? && !reflection.strict_loading? && !association.disable_joins &&
              !association.klass.strict_loading_by_default && !scoped?(reflection, association.klass)
          end

          def scoped?(reflection, klass)
            classes = reflection.through_reflection? ? reflection.chain.map(&:klass) : [klass]
            classes.any? { |one| one.current_scope || one.global_current_scope }
          end

          # The association's own way, as after a query.
          def inverted(association, found)
            Array(found).each { |record| association.set_inverse_instance(record) }
            found
          end

          def load(association, siblings, together)
            owners = owners(association, siblings)
            return if owners.size < 2 || !same?(association)

            first_of_many(association, owners, together) || preload(association, owners, together)
          end

          # A has_one with an order is the first of many records, which a preload would all load.
          def first_of_many(association, owners, together)
            query = GroupedQuery.for(association, owners) if association.reflection.has_one?
            return unless query&.ordered?

            query.firsts.tap { |answers| together.add(answers.values.compact) }
          end

          def preload(association, owners, together)
            name = association.reflection.name
            copies = owners.map { |owner| copy(owner) }
            ::ActiveRecord::Associations::Preloader.new(records: copies, associations: [name]).call
            targets = copies.map { |copy| copy.association(name).target }
            together.add(targets.flat_map { |target| Array(target) })
            Together.answers(owners, targets, back: back?(association))
          end

          # Those whose answer the same query may contain.
          def owners(association, siblings)
            reflection = association.reflection
            keys = keys(reflection)
            siblings.select do |record|
              alike?(record, association.owner, reflection) && !record.new_record? && !record.strict_loading? &&
                keys.all? { |key| record.has_attribute?(key) } && open?(record.association(reflection.name), association.klass)
            end
          end

          def alike?(record, owner, reflection)
            model = record.class # not instance_of?, which a decorator delegates
            model == owner.class ||
              (model < ::ActiveRecord::Base && model._reflect_on_association(reflection.name).equal?(reflection))
          end

          def keys(reflection)
            key = reflection.polymorphic? ? [reflection.foreign_key, reflection.foreign_type] : reflection.chain.last.join_foreign_key
            Array(key).flatten.map(&:to_s)
          end

          def open?(association, klass)
            !association.loaded? && association.klass == klass
          rescue NameError # a polymorphic type that is no class: an error of that record alone
            false
          end

          def same?(association)
            owner = association.owner.class
            in_order?(association.reflection) &&
              Rows.for(owner).instances.preloads_same?(owner, association.reflection.name, [association.klass])
          rescue DeclarationError
            false
          end

          # Without an order, a join of several records for each is in another order than a preload.
          def in_order?(reflection)
            return true unless reflection.through_reflection?

            source = reflection.source_reflection
            return true if [reflection.scope, source.scope].compact.any? { |scope| ordered?(reflection.klass, scope) }

            through = reflection.through_reflection
            source.belongs_to? && through.scope.nil? && (!through.collection? || (!through.through_reflection? && reflection.collection?))
          end

          def ordered?(klass, scope)
            scope.arity.zero? && klass.unscoped.instance_exec(&scope)&.order_values&.any?
          end

          # A copy shares the attributes, and has no association loaded.
          def copy(record)
            record.clone.tap { |copy| copy.instance_variable_set(:@association_cache, {}) }
          end

          def back?(association)
            reflection = association.reflection
            return false unless reflection.belongs_to?

            inverse = reflection.polymorphic? ? reflection.polymorphic_inverse_of(association.klass) : reflection.inverse_of
            !inverse.nil? && (inverse.has_one? || association.klass.has_many_inversing)
          end
        end
      end
    end
  end
end
