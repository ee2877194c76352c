# frozen_string_literal: true

module Castellan
  module Serializer
    # Loads the records of a relation or dataset with what they are asked for next, by the ORM's own eager loading.
    #
    #   Preloading.records(User.active, [:roles])   # => [#<User>, …]
    #
    # An association whose scope takes its owner, or has a limit, is left to be asked one by one: loaded for many at once it
    # would answer something else.
    module Preloading
      class << self
        # @param names [Array<Symbol, Hash>] associations
        # @return [Array]
        def records(scope, names)
          # A copy, because the caller's own is to stay unread.
          return (names.empty? ? scope.dup : scope.preload(*names)).to_a if scope.respond_to?(:preload)

          (names.empty? ? scope : scope.eager(*names)).all
        end

        # @param model [Class]
        # @param name [Symbol] of an association
        # @return [Boolean]
        def safe?(model, name)
          return true unless model.respond_to?(:reflect_on_association)

          Rows::ActiveRecordRows::EagerLoading.same?(model, name)
        end
      end
    end
  end
end
