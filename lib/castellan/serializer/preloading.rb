# frozen_string_literal: true

module Castellan
  module Serializer
    # Loads the records of a relation or dataset with what they are asked for next, by the ORM's own eager loading.
    #
    #   Preloading.records(User.active, [:roles])               # => [#<User>, …]
    #   Preloading.afterwards(notes, instances, [:about])       # what only the records themselves can say
    #
    # Only associations of which {Rows::ObjectInstances#loads_at_once?} holds are loaded with the relation: any other would answer
    # something else, or depends on which classes the records name (a polymorphic belongs_to with a scope).
    module Preloading
      class << self
        # @param given [Symbol, Array, Hash, nil] as ActiveRecord's `preload` takes them: `{ variants: :prices }` is one tree
        # @return [Array<Symbol, Hash>]
        def list(given)
          (given.is_a?(Hash) ? [given] : Array(given)).freeze
        end

        # @param names [Array<Symbol, Hash>] associations
        # @return [Array]
        def records(scope, names)
          # A copy, because the caller's own is to stay unread.
          return (names.empty? ? scope.dup : scope.preload(*names)).to_a if scope.respond_to?(:preload)

          (names.empty? ? scope : scope.eager(*names)).all
        end

        # Loads each of the associations for all records at once where that finds what each would find by itself.
        # @param records [Array]
        # @param instances [Rows::ObjectInstances]
        # @param names [Array<Symbol>]
        # @return [Array] the records
        def afterwards(records, instances, names)
          names.each { |name| instances.preload_where_same(records, name) } if records.any?
          records
        end
      end
    end
  end
end
