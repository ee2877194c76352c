# frozen_string_literal: true

module Castellan
  module Rows
    # Finds the resource of each step of a `from:` path, for its scope.
    # Uses the relationship's resource, otherwise the one resource with a scope that is declared for the
    # association's model.
    #
    #   PathResources.of(UserResource.definition, adapter, %i[employee desk])   # => [EmployeeResource.definition, nil]
    module PathResources
      module_function

      # @param definition [Resource::Definition, nil] a definition of the model where the path begins
      # @param path [Array<Symbol>]
      # @return [Array<Resource::Definition, nil>] one for each step
      # @raise [DeclarationError] if several resources of one model have scopes and no relationship picks one
      def of(definition, adapter, path, location: nil)
        owner = definition
        path.map do |name|
          association = adapter&.association(name)
          definition = declared(definition, name, association&.model) || by_model(owner, name, association&.model, location)
          adapter = association && association.reason.nil? ? association.adapter : nil
          definition
        end
      end

      def declared(definition, name, model)
        relationships = definition ? definition.relationships.values.reject(&:polymorphic?) : []
        found = relationships.select { |relationship| relationship.association_name == name && relationship.block.nil? }
                             .map(&:definition).select { |related| model.nil? || related.model == model }
        found.find(&:scope) || found.first
      end

      def by_model(owner, name, model, location)
        return unless model

        scoped = Resource.descendants.select { |resource| resource.declarations.scope && live?(resource) }
        found = scoped.select { |resource| model == resource.declarations.model }
        found = scoped.select { |resource| above?(resource.declarations.model, model) } if found.empty?
        return found.first&.definition if found.map { |resource| resource.declarations.scope }.uniq.size < 2

        raise DeclarationError.new("#{owner.name}: from: walks #{name}, and several resources of #{model} have a scope " \
                                   "(#{found.map(&:name).sort.join(", ")}): declare which is meant, " \
                                   "`belongs_to :#{name}, resource: #{found.first.name.inspect}, include: false`", location: location)
      end

      # With single table inheritance the scope of a superclass concerns the rows of its subclasses.
      def above?(superclass, model)
        superclass.is_a?(Class) && model.is_a?(Class) && model < superclass
      end

      # Ignores anonymous classes and classes that were reloaded.
      def live?(resource)
        resource.name && Object.const_defined?(resource.name) && Object.const_get(resource.name).equal?(resource)
      end
      private_class_method :declared, :by_model, :above?, :live?
    end
  end
end
