# frozen_string_literal: true

module Castellan
  module Serializer
    # What to load with the records of a document that is written from records as a whole: what is declared with `preloads:`, and
    # what relationships and includes read, as deep as associations can be followed.
    #
    #   AssociationTree.of(translation, options, options.tree)   # => [:author, { tags: [:owner] }]
    module AssociationTree
      # @param tree [Hash{Symbol => Hash}] what is included
      # @return [Array<Symbol, Hash>] for `preload` or `eager`
      def self.of(translation, options, tree)
        fieldset = options.fieldset(translation.serializer.record_type)
        names = translation.preloads(fieldset && (fieldset | tree.keys), rows: false)
        below = tree.each_with_object({}) do |(name, rest), nested|
          next unless names.include?(name) && translation.association(name).walks?

          found = of(translation.association(name).target, options, rest)
          nested[name] = found if found.any?
        end
        below.empty? ? names : (names - below.keys) << below
      end
    end
  end
end
