# frozen_string_literal: true

require_relative "stored_records"

module Castellan
  module Serializer
    # What a serializer was given, where rows can stand for it: a relation or a dataset that has yet to be read, or a list of records
    # that are in the database.
    #
    #   source = Source.of(User.active)   # => nil for plain objects, one record, records that were built and not saved
    #   source.model                      # => User
    #   source.scope                      # => what a rows adapter reads: the relation, or the records as {Rows::Records}
    class Source
      class << self
        # @return [Source, nil]
        def of(resource)
          return new(unproxied(resource), model_of(resource)) if relation?(resource)
          return unless resource.is_a?(Array) || active_record?(resource)

          records = resource.to_a
          new(Rows::Records.new(records), records.first.class) if StoredRecords.all?(records)
        end

        # @return [Boolean] whether it has yet to be read, and a model is known for it
        def relation?(resource)
          return unread?(resource) if active_record?(resource)

          defined?(::Sequel::Dataset) && resource.is_a?(::Sequel::Dataset) && resource.respond_to?(:model)
        end

        private

        def active_record?(resource)
          defined?(::ActiveRecord::Relation) && resource.is_a?(::ActiveRecord::Relation)
        end

        # What was built in an association and not saved is known to its records alone.
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

      # @return [Object] a relation, a dataset or {Rows::Records}
      # @return [Class] of ActiveRecord or Sequel
      attr_reader :scope, :model

      def initialize(scope, model)
        @scope = scope
        @model = model
      end

      # @return [Boolean] whether the records were given, not a relation
      def records?
        scope.is_a?(Rows::Records)
      end
    end
  end
end
