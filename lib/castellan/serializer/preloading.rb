# frozen_string_literal: true

module Castellan
  module Serializer
    # Loads the records of a relation or dataset with what they are asked for next, by the ORM's own eager loading.
    #
    #   Preloading.records(User.active, [:roles])               # => [#<User>, …]
    #   Preloading.afterwards(notes, instances, [:about])       # what only the records themselves can say
    #
    # Only associations of which {Rows::ObjectRows::Instances#loads_at_once?} holds are loaded with the relation: any other would answer
    # something else, or depends on which classes the records name (a polymorphic belongs_to with a scope).
    module Preloading
      class << self
        # @param given [Symbol, Array, Hash, nil] as ActiveRecord's `preload` takes them: `{ variants: :prices }` is one tree
        # @return [Array<Symbol, Hash>]
        def list(given)
          (given.is_a?(Hash) ? [given] : Array(given)).freeze
        end

        # Loads the records of a relation or dataset together with the associations. An association that the relation itself names in
        # `includes`, `preload` or `eager` is loaded once, as the relation has it, with what `names` adds below it.
        # @param names [Array<Symbol, Hash>] associations
        # @return [Array]
        def records(scope, names)
          return of_active_record(scope, tree(names)).to_a if scope.respond_to?(:preload)

          (names.empty? ? scope : scope.eager(grown(scope.opts[:eager] || {}, tree(names)))).all
        end

        # @return [Hash{Symbol => Hash}] the associations that the relation or dataset loads by itself
        def of(scope)
          return tree([scope.opts[:eager] || {}]) unless scope.respond_to?(:preload)

          tree(scope.preload_values + scope.includes_values + scope.eager_load_values)
        end

        # Loads each of the associations for all records at once where that finds what each would find by itself.
        # @param records [Array]
        # @param instances [Rows::ObjectRows::Instances]
        # @param names [Array<Symbol>]
        # @return [Array] the records
        def afterwards(records, instances, names)
          names.each { |name| instances.preload_where_same(records, name) } if records.any?
          records
        end

        private

        # The caller's own relation stays unread: a copy is loaded. ActiveRecord loads each argument of `preload` by itself, and what
        # an argument finds loaded already it takes as it is: so what two of them name has to stand in one.
        def of_active_record(relation, tree)
          joined = relation.eager_loading? ? tree(relation.eager_load_values + relation.includes_values) : {}
          given = relation.preload_values + (relation.eager_loading? ? [] : relation.includes_values)
          added = without(tree, joined)
          return relation.dup if added.empty?

          trees = given.map { |one| tree([one]) }.reject(&:empty?)
          trees = trees.map { |one| grown(one, added.slice(*one.keys)) } << added.except(*trees.flat_map(&:keys))
          relation.unscope(*(relation.eager_loading? ? [:preload] : %i[includes preload])).preload(*trees.reject(&:empty?))
        end

        # @return [Hash{Symbol => Hash}] the associations, each once
        def tree(names)
          names.each_with_object({}) do |name, tree|
            pairs = name.is_a?(Hash) ? name : { name => {} }
            pairs.each { |association, below| tree[association.to_sym] = grown(tree[association.to_sym] || {}, below_of(below)) }
          end
        end

        def below_of(below)
          narrowed?(below) ? {} : tree(list(below))
        end

        # @return [Hash] the tree with what another one has besides; a block of Sequel's that narrows an association is left as it is
        def grown(tree, other)
          tree.merge(other) { |_, below, more| narrowed?(below) ? below : grown(tree(list(below)), more) }
        end

        def narrowed?(below)
          below.is_a?(Proc) || (below.is_a?(Hash) && below.keys.any?(Proc))
        end

        def without(tree, joined)
          tree.each_with_object({}) do |(name, below), rest|
            left = joined.key?(name) ? without(below, joined[name]) : below
            rest[name] = left unless joined.key?(name) && left.empty?
          end
        end
      end
    end
  end
end
