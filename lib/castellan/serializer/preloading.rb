# frozen_string_literal: true

module Castellan
  module Serializer
    # Loads the records of a relation or dataset with what they are asked for next, by the ORM's own eager loading.
    #
    #   Preloading.records(User.active, [:roles])   # => [#<User>, …]
    #
    # Only associations of which {Rows::ObjectInstances#loads_at_once?} holds belong here: any other would answer something else.
    module Preloading
      class << self
        # @param names [Array<Symbol, Hash>] associations
        # @return [Array]
        def records(scope, names)
          # A copy, because the caller's own is to stay unread.
          return (names.empty? ? scope.dup : scope.preload(*names)).to_a if scope.respond_to?(:preload)

          (names.empty? ? scope : scope.eager(*names)).all
        end
      end
    end
  end
end
