# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Lets ActiveRecord's associations use the results in {Together} instead of querying.
      #
      #   Siblings.attach    # Together.render calls it
      #
      # Preloads into copies of the records, so that no association of a sibling changes.
      # Associations for which a preload finds other records than a lazy load (see
      # {Instances#preloads_same?}) are loaded lazily.
      module Siblings
        # Prepended to ActiveRecord::Associations::SingularAssociation and CollectionAssociation.
        module Targets
          private

          # Rails 8.0 passes `async:`.
          def find_target(**options)
            together = (Together.current unless options[:async]) or return super

            Siblings.target(self, together) { super }
          end
        end

        # Prepended to ActiveRecord::Associations::CollectionAssociation.
        module Collections
          def size
            Siblings.answer(self, :counts) { super }
          end

          def empty? = Siblings.answer(self, :counts) { return super }.zero?
          def ids_reader = Siblings.answer(self, :ids) { super }
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
          # Prepends the modules once per process. Outside documents they only read a fiber-local variable.
          def attach
            return if @attached

            associations = ::ActiveRecord::Associations
            associations::SingularAssociation.prepend(Targets)
            associations::CollectionAssociation.prepend(Targets, Collections)
            associations::CollectionProxy.prepend(Proxies)
            @attached = true
          end

          def record?(object) = object.class < ::ActiveRecord::Base

          # @yieldparam name [Symbol] an association that is loaded
          def each_loaded(record)
            record.instance_variable_get(:@association_cache)&.each do |name, association|
              yield name, Array(association.target) if association.loaded?
            end
          end

          # @yield loads the association of this record alone
          # @return [Array<Object>, Object, nil] the result of the association's `find_target`
          def target(association, together)
            found = shared?(association) ? targets(association, together) : Together::NONE
            return yield.tap { |own| together.add(Array(own)) } if Together::NONE.equal?(found)

            Array(found).each { |record| association.set_inverse_instance(record) }
            found
          end

          # Returns the result of a query about an association without loading the association.
          # @param query [Symbol] a method of {GroupedQuery}
          # @yield queries for this record alone
          # @param queried [Boolean] whether the method queries even if the association is loaded
          def answer(association, query, queried: false, **options)
            together = (Together.current if queried || !association.loaded?) or return yield
            return yield unless !association.null_scope? && shared?(association) &&
                                (queried || (association.target.empty? && !counted?(association, query)))

            found = together.answer(association.owner, [association.reflection.name, query], keep: true) do |siblings|
              owners = owners(association, siblings)
              grouped(association, owners, query, together, **options) if owners
            end
            found = ids_of_records(association, together) if Together::NONE.equal?(found) && query == :ids
            return yield if Together::NONE.equal?(found)

            association.set_inverse_instance(found) if found && query == :firsts
            found
          end

          private

          def counted?(association, query) = query == :counts && association.reflection.has_cached_counter?

          def grouped(association, owners, query, together, **options)
            answers = GroupedQuery.for(association, owners)&.public_send(query, **options) or return
            together.add(answers.values.compact) if query == :firsts
            answers
          end

          # Returns the ids of a :through association, which {GroupedQuery} does not read.
          def ids_of_records(association, together)
            found = targets(association, together, keep: true)
            Together::NONE.equal?(found) ? found : found.pluck(*association.reflection.association_primary_key)
          end

          def targets(association, together, **keep)
            together.answer(association.owner, [association.reflection.name, association.klass], **keep) do |siblings|
              load(association, siblings, together)
            end
          end

          # Returns whether siblings can share a result. A strict_loading record must raise as usual, and
          # inside `scoping` or `unscoped` the same query returns other rows.
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

          def load(association, siblings, together)
            owners = owners(association, siblings) or return
            first_of_many = association.reflection.has_one? && GroupedQuery.for(association, owners)&.ordered?
            return grouped(association, owners, :firsts, together) if first_of_many # a preload would load all of them

            preload(association, owners, together)
          end

          def preload(association, owners, together)
            name = association.reflection.name
            copies = owners.map { |owner| copy(owner) }
            ::ActiveRecord::Associations::Preloader.new(records: copies, associations: [name]).call
            targets = copies.map { |copy| copy.association(name).target }
            together.add(targets.flat_map { |target| Array(target) })
            Together.answers(owners, targets, back: back?(association))
          end

          # Returns the siblings that one query can serve, or nil if each must query for itself.
          def owners(association, siblings)
            reflection = association.reflection
            keys = keys(reflection)
            found = siblings.select do |record|
              alike?(record, association.owner, reflection) && !record.new_record? && !record.strict_loading? &&
                keys.all? { |key| record.has_attribute?(key) } && open?(record.association(reflection.name), association.klass)
            end
            found if found.size > 1 && same?(association)
          end

          def alike?(record, owner, reflection)
            model = record.class # not instance_of?, because decorators delegate it
            model == owner.class ||
              (model < ::ActiveRecord::Base && model._reflect_on_association(reflection.name).equal?(reflection))
          end

          def keys(reflection)
            key = reflection.polymorphic? ? [reflection.foreign_key, reflection.foreign_type] : reflection.chain.last.join_foreign_key
            Array(key).flatten.map(&:to_s)
          end

          def open?(association, klass)
            !association.loaded? && association.klass == klass
          rescue NameError # the polymorphic type is not a class: only this record's own lazy load may raise
            false
          end

          def same?(association)
            owner = association.owner.class
            in_order?(association.reflection) &&
              Rows.for(owner).instances.preloads_same?(owner, association.reflection.name, [association.klass])
          rescue DeclarationError
            false
          end

          # Without an ORDER BY, a join that returns several records per
          # owner has another order than a preload.
          def in_order?(reflection)
            return true unless reflection.through_reflection?

            source = reflection.source_reflection
            return true if [reflection.scope, source.scope].compact.any? { |scope| ordered?(reflection.klass, scope) }

            through = reflection.through_reflection
            source.belongs_to? && through.scope.nil? && (!through.collection? || (!through.through_reflection? && reflection.collection?))
          end

          def ordered?(klass, scope) = scope.arity.zero? && klass.unscoped.instance_exec(&scope)&.order_values&.any?

          # The copy shares the attributes but has no loaded associations.
          def copy(record) = record.clone.tap { |copy| copy.instance_variable_set(:@association_cache, {}) }

          def back?(association)
            reflection = association.reflection
            return false unless reflection.belongs_to?

            inverse = reflection.polymorphic? ? reflection.polymorphic_inverse_of(association.klass) : reflection.inverse_of
            !inverse.nil? && (inverse.has_one? || association.klass.has_many_inversing)
          end
        end

        # Queries the counts, ids or first records of a has_many or has_one for several owners at once.
        #
        #   query = GroupedQuery.for(user.association(:posts), [ada, alan])   # nil: query for each owner
        #   query.counts   # => { ada => 3, alan => 0 }, compared by identity
        #
        # Supports associations of one table whose scope has only conditions and an order.
        class GroupedQuery
          SIMPLE = %i[where order reordering extending preload readonly].freeze
          private_constant :SIMPLE

          # @param association [ActiveRecord::Associations::Association] the association of one of the owners
          # @return [GroupedQuery, nil]
          def self.for(association, owners)
            reflection = association.reflection
            return if reflection.through_reflection? || reflection.belongs_to? || reflection.macro == :has_and_belongs_to_many

            query = new(association, owners)
            query if query.possible?
          end

          def initialize(association, owners)
            @reflection = association.reflection
            @model = association.klass
            @owners = owners
            @key = @reflection.join_primary_key
            @owner_key = @reflection.join_foreign_key
          end

          def possible?
            return false if [@key, @owner_key, @model.primary_key].any? { |key| !key.is_a?(String) }

            owner = @owners.first.class
            owner.type_for_attribute(@owner_key).type == @model.type_for_attribute(@key).type && (scope.values.keys - SIMPLE).empty?
          end

          # @return [Hash{ActiveRecord::Base => Integer}]
          def counts = by_owner(numbers, 0)

          # @return [Hash{ActiveRecord::Base => Array}] primary keys
          def ids
            pairs = related.except(:preload).pluck(@key, @model.primary_key)
            by_owner(pairs.group_by(&:first).transform_values { |some| some.map(&:last) }) { [] }
          end

          # @return [Boolean] whether the scope has an order; then a has_one may choose among several records
          def ordered? = scope.order_values.any?

          # @param by_key [Boolean] whether to order by primary key if the scope has no order
          # @return [Hash{ActiveRecord::Base => ActiveRecord::Base, nil}]
          def firsts(by_key: false)
            key = @model.arel_table[@model.primary_key]
            orders = related.arel.orders
            orders = [key.asc] if orders.empty? && by_key
            window = ::Arel::Nodes::Window.new.partition(@model.arel_table[@key]).order(*orders)
            place = ::Arel::Nodes::Over.new(::Arel.sql("ROW_NUMBER()"), window).as("castellan_place")
            places = related.except(:order, :preload).select(key.as("castellan_id"), place).arel.as("castellan_places")
            first = ::Arel::SelectManager.new(places).project(::Arel.sql("castellan_id")).where(::Arel.sql("castellan_place = 1"))
            by_owner(scope.except(:where, :order).where(key.in(first)).to_h { |record| [record._read_attribute(@key), record] })
          end

          private

          def scope
            @scope ||= begin
              all = @reflection.scope ? @model.all.instance_exec(&@reflection.scope) || @model.all : @model.all
              @reflection.type ? all.where(@reflection.type => @owners.first.class.polymorphic_name) : all
            end
          end

          def related
            @related ||= scope.where(@key => keys)
          end

          def numbers = related.except(:order, :preload).group(@key).count

          def keys
            @keys ||= @owners.map { |owner| owner._read_attribute(@owner_key) }
          end

          def by_owner(found, default = nil)
            @owners.zip(keys).each_with_object({}.compare_by_identity) do |(owner, key), answers|
              answers[owner] = found.fetch(key) { block_given? ? yield : default }
            end
          end
        end
        private_constant :GroupedQuery
      end
    end
  end
end
