# frozen_string_literal: true

module Castellan
  module Serializer
    # A relation or a dataset that has not been read yet, and its model.
    #
    #   source = Source.of(User.active)   # => nil for records, plain objects, a relation that is loaded
    #   source.model                      # => User
    class Source
      class << self
        # @return [Source, nil]
        def of(resource)
          new(unproxied(resource), model_of(resource)) if relation?(resource)
        end

        private

        def relation?(resource)
          return unread?(resource) if active_record?(resource)

          defined?(::Sequel::Dataset) && resource.is_a?(::Sequel::Dataset) && resource.respond_to?(:model)
        end

        def active_record?(resource)
          defined?(::ActiveRecord::Relation) && resource.is_a?(::ActiveRecord::Relation)
        end

        # Records that were built in an association and not saved are in no table.
        def unread?(relation)
          return false if relation.loaded?
          return true unless association?(relation)

          relation.proxy_association.owner.persisted? && relation.proxy_association.target.empty?
        end

        # A relation that was made of an association (`posts.published`) is one like any other.
        def association?(relation)
          relation.is_a?(::ActiveRecord::Associations::CollectionProxy)
        end

        def unproxied(resource)
          active_record?(resource) && association?(resource) ? resource.scope : resource
        end

        def model_of(resource)
          resource.respond_to?(:klass) ? resource.klass : resource.model
        end
      end

      # @return [Object] the relation or dataset
      # @return [Class] of ActiveRecord or Sequel
      attr_reader :scope, :model

      def initialize(scope, model)
        @scope = scope
        @model = model
      end
    end
  end
end
