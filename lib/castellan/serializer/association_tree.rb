# frozen_string_literal: true

require_relative "translation"

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

        # Loads what records that were given have not loaded, for all of one class at once: of those that are stored and unchanged.
        # @param records [Array<Object>]
        # @param tree [Hash{Symbol => Hash}] what is included
        # @return [Array<Object>] the same
        def complete(records, serializer, options, tree = options.tree)
          records.group_by(&:class).each do |model, some| # not instance_of?, which a decorator delegates
            complete_kind(some, Translation.of(serializer, model), options, tree) if model?(model)
          end
          records
        rescue DeclarationError
          records
        end

        private

        def model?(model)
          (defined?(::ActiveRecord::Base) && model < ::ActiveRecord::Base) || (defined?(::Sequel::Model) && model < ::Sequel::Model)
        end

        def complete_kind(records, translation, options, tree)
          fieldset = fieldset(translation, options, tree)
          instances = translation.adapter.instances
          translation.preloads(fieldset, tree.keys).each { |name| instances.preload(missing(records, name), [name]) }
          translation.preloads_afterwards(fieldset, tree.keys).each { |name| instances.preload_where_same(missing(records, name), name) }
          tree.slice(*translation.serializer.relationships_to_serialize&.keys).each do |name, rest|
            reader = translation.association(name)
            next unless reader.walks?

            there = records.select { |record| instances.loaded?(record, reader.association_name) }
            related = there.flat_map { |record| instances.related(record, reader.association_name) }
            complete(related.uniq(&:object_id), reader.target.serializer, options, rest)
          end
        end

        def missing(records, tree)
          tops = tree.is_a?(Hash) ? tree.keys : [tree]
          records.select { |record| tops.all? { |name| plain?(record, name) } }
        end

        # The record has what is stored, and nothing was loaded, built or put in place.
        def plain?(record, name)
          unless record.respond_to?(:association)
            return !record.new? && record.changed_columns.empty? && !record.associations.key?(name)
          end

          record.persisted? && !record.has_changes_to_save? && !record.association(name).loaded? && record.association(name).target.blank?
        end

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
