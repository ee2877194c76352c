# frozen_string_literal: true

module Castellan
  module Rows
    # Describes how rows read one association of a model; the adapters have a class of their own for it.
    #
    #   association = Rows.for(User).association(:roles)
    #   association.to_many?                           # => true
    #   association.lazy.sql(%("roles"."id"))          # => the SELECT that loads the roles of {OwnerKey}
    #
    # An association that SQL cannot read (a scope that takes the owner, keys of several columns) has a
    # {#reason} and is read through models.
    class Association
      # @return [Symbol]
      # @return [Symbol] :has_many, :has_one, :belongs_to, :has_and_belongs_to_many
      # @return [Class] the related model
      # @return [Symbol] the owner's column that the association starts from
      # @return [String, nil] why the association cannot be read as rows
      attr_reader :name, :macro, :model, :owner_key, :reason

      # @return [Object] the adapter of the related model
      def adapter
        @owner.related(model)
      end

      # @param relationship [Resource::Relationship] a relationship of this association
      # @return [String, nil] why it cannot be read as rows
      def reason_for(relationship)
        composite = relationship.definitions.find { |definition| definition.id_column.is_a?(Array) }
        return ModelReasons.of_id(composite) if composite

        relationship.polymorphic? ? reason_for_several(relationship) : reason
      end

      # @return [Boolean]
      def rows?(relationship)
        reason_for(relationship).nil?
      end

      private

      def reason_for_several(_relationship)
        "its records are of several resources"
      end
    end
  end
end
