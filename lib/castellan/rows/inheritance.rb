# frozen_string_literal: true

module Castellan
  module Rows
    # Assigns the rows of an STI table to the resources that are declared with `types`.
    #
    #   kinds = Inheritance.new(VehicleResource.definition.itself, adapter)
    #   kinds.column             # => :type
    #   kinds.position("Car")    # => 0; nil for a class without a resource
    #   kinds.narrow(Vehicle.all, scopes)   # => WHERE "vehicles"."type" IN ('Car', 'Truck')
    #
    # A row belongs to the resource of its class, or of the nearest superclass.
    class Inheritance
      # @param relationship [Resource::Relationship] see {Resource::Definition#itself}
      # @param adapter [Object] the adapter of the base class
      def initialize(relationship, adapter)
        @relationship = relationship
        @adapter = adapter
        @models = relationship.definitions.map(&:model)
        freeze
      end

      # @return [Symbol, nil] nil if the model's table has no such column
      def column = @adapter.types.inheritance_column

      # @param value [Object, nil] the driver's value of {#column}
      # @return [Integer, nil] the position of the row's resource
      def position(value) = nearest(@adapter.types.class_of(value))

      # @param scope [Object] a relation or dataset of the base class
      # @return [Object] without rows of other classes, and without rows that their own resource's scope hides
      def narrow(scope, scopes)
        found = names
        scope = @adapter.scopes.with_one_of(scope, column, found.flatten) unless @models.include?(@adapter.model)
        @relationship.definitions.each_with_index do |definition, kind|
          visible = own_scope(definition, scopes) or next
          scope = @adapter.scopes.where_sql(scope, "(#{others(found, kind)} OR #{visible.condition})")
        end
        scope
      end

      # @param scope [Object] a relation or dataset of the base class, or of the type's model
      # @param kind [Integer] the position of a type
      # @return [Object] the scope's rows of this type
      def only(scope, kind)
        @adapter.scopes.where_sql(scope, "NOT (#{others(names, kind)})")
      end

      private

      # A scope inherited from the base class's resource is applied elsewhere.
      def own_scope(definition, scopes)
        scopes.of(definition, @adapter) unless definition.scope.nil? || definition.scope.equal?(@relationship.owner.definition.scope)
      end

      def others(found, kind)
        column = @adapter.types.qualified(self.column)
        if @models[kind] == @adapter.model
          rest = found.each_index.reject { |index| index == kind }.flat_map { |index| found[index] }
          return rest.empty? ? "1 = 0" : "(#{column} IS NOT NULL AND #{column} IN (#{literals(rest)}))"
        end

        "#{column} IS NULL OR #{column} NOT IN (#{literals(found[kind])})"
      end

      def literals(names) = names.map { |name| @adapter.types.literal(name) }.join(", ")

      def names
        all = @models.map { |model| @adapter.types.classes_of(model) }
        all.each_with_index.map { |classes, kind| classes.select { |_, one| nearest(one) == kind }.keys }
      end

      def nearest(model)
        model&.ancestors&.each { |one| @models.index(one)&.then { |kind| return kind } }
        nil
      end
    end
  end
end
