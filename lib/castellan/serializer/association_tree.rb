# frozen_string_literal: true

module Castellan
  module Serializer
    # What to load with the records of a document that is written from records as a whole: what is declared with `preloads:`, and
    # what relationships and includes read, as deep as associations can be followed.
    #
    #   AssociationTree.of(translation, options, options.tree)   # => [:author, { tags: [:owner] }]
    #   AssociationTree.load(scope, translation, options)        # => [#<Article>, …]
    module AssociationTree
      class << self
        # @param tree [Hash{Symbol => Hash}] what is included
        # @return [Array<Symbol, Hash>] for `preload` or `eager`
        def of(translation, options, tree)
          names = translation.preloads(fieldset(translation, options, tree), tree.keys)
          below = tree.each_with_object({}) do |(name, rest), nested|
            next unless followed?(translation, name, names)

            found = of(translation.association(name).target, options, rest)
            nested[name] = found if found.any?
          end
          below.empty? ? names : (names - below.keys) << below
        end

        # @return [Array] the records of the relation or dataset
        def load(scope, translation, options)
          records = Preloading.records(scope, of(translation, options, options.tree))
          afterwards(records, translation, options, options.tree)
        end

        private

        def fieldset(translation, options, tree)
          chosen = options.fieldset(translation.serializer.record_type)
          chosen && (chosen | tree.keys)
        end

        def followed?(translation, name, loaded)
          loaded.include?(name) && translation.association(name).walks?
        end

        # Goes down the include with the records, for what only they can say.
        def afterwards(records, translation, options, tree)
          fieldset = fieldset(translation, options, tree)
          later = translation.preloads_afterwards(fieldset, tree.keys)
          instances = translation.adapter.instances
          Preloading.afterwards(records, instances, later)
          loaded = translation.preloads(fieldset, tree.keys)
          tree.each do |name, rest|
            next unless loaded.include?(name) || later.include?(name)

            there = records.select { |record| instances.loaded?(record, name) }
            below(translation, name, there.flat_map { |record| instances.related(record, name) }, options, rest)
          end
          records
        end

        def below(translation, name, related, options, tree)
          reader = translation.association(name)
          return afterwards(related, reader.target, options, tree) if reader.walks?

          relationship = translation.serializer.relationships_to_serialize[name]
          several(relationship, related, options, tree) if relationship.polymorphic
        end

        # Nothing could be loaded below them before it was known which they are.
        def several(relationship, related, options, tree)
          kinds = related.group_by { |record| [relationship.serializer_for(record, options.params), record.class] }
          kinds.each do |(serializer, model), some|
            translation = Translation.of(serializer, model)
            translation.adapter.instances.preload(some, of(translation, options, tree))
            afterwards(some, translation, options, tree)
          end
        end
      end
    end
  end
end
