# frozen_string_literal: true

module Castellan
  class Resource
    # Represents a declared relationship: name, cardinality and related resources. Frozen.
    #
    # Looks up the related resource on first use, because two resources may refer to each other.
    class Relationship
      ALWAYS = {}.freeze
      private_constant :ALWAYS

      # @param types [Array<Class, String>] the resources of the owner's types
      # @return [Relationship] from each row of a resource to itself, as a resource of its type
      def self.to_types(owner, types, location)
        new(name: :itself, key: "itself", macro: :has_one, owner: owner, resource: types, location: location, itself: true)
      end

      # @return [Symbol] the declared name
      # @return [Symbol] the association, which has the same name unless `from:` is given
      # @return [String] the member's name in the document
      # @return [Symbol] :has_many, :has_one or :belongs_to
      # @return [Class] the resource that declares it
      # @return [Proc, nil] returns the related records of a record, instead of an association
      # @return [Condition, nil]
      # @return [Hash{Symbol => Computed}]
      # @return [Computed, nil]
      # @return [String] "path:line" of the declaration
      attr_reader :name, :association_name, :key, :macro, :owner, :block, :condition, :links, :meta, :location

      def initialize(name:, key:, macro:, owner:, resource:, location:, from: nil, block: nil, condition: nil, links: ALWAYS, meta: nil,
                     lazy: false, include: true, itself: false)
        @name = name
        @association_name = (from || name).to_sym
        @key = key
        @macro = macro
        @owner = owner
        @resource = resource
        @block = block
        @condition = condition
        @links = links
        @meta = meta
        @lazy = lazy
        @include = include
        @itself = itself
        @location = location
        @found = {}
        freeze
      end

      def to_many?
        macro == :has_many
      end

      # @return [Boolean] whether linkage is written only if the records are included
      def lazy?
        @lazy
      end

      # @return [Boolean] whether clients may include the records
      def includable?
        @include
      end

      # @return [Boolean] whether it is the relationship from each row to itself, see {Resource.types}
      def itself?
        @itself
      end

      # @return [Boolean] whether it has a URL for related resources, such as `/posts/1/author`
      def related?
        includable? && block.nil? && !(named_several? && to_many?)
      end

      # @return [Boolean] whether the declaration has `resource:`; otherwise the relationship's name is used
      def resource_named?
        !@resource.nil?
      end

      # @return [Boolean] whether the declaration names several resources
      def named_several?
        @resource.is_a?(Array) || @resource.is_a?(Hash)
      end

      # @return [Boolean] whether its records may be of several types
      def polymorphic?
        named_several? || resource.definition.several_types?
      end

      # @return [Array<Class>] the related resources, looked up once
      # @raise [DeclarationError] with the most similar resource name, if there is no such resource
      def resources
        @found[:resources] ||= named.values.map { |resource| find(resource) }.freeze
      end

      # @return [Array<Definition>] several only if it is polymorphic
      def definitions
        @found[:definitions] ||= resources.flat_map { |resource| resource.definition.written_as }.freeze
      end

      # @return [Class] the related resource, if there is only one
      def resource
        resources.first
      end

      # @return [Definition]
      def definition
        resource.definition
      end

      # @return [Array<Object, nil>] for each of {#definitions}, the model or the model's name of its records
      def kinds
        @found[:kinds] ||= named.keys.zip(resources).flat_map do |kind, resource|
          types = resource.definition.written_as
          kind.is_a?(Integer) || types.size > 1 ? types.map(&:model) : [kind]
        end
      end

      # @return [Boolean] whether records of other classes are omitted, because `types` does not list them
      def leaves_out?
        itself? || resources.any? { |resource| resource.definition.several_types? }
      end

      private

      # In an Array, each resource stands for its own model.
      def named
        case @resource
        when Hash then @resource
        when Array then @resource.each_with_index.to_h { |resource, index| [index, resource] }
        else { 0 => @resource }
        end
      end

      def resource_class(given)
        return given if given.is_a?(Class) && given <= Resource

        shown = given.is_a?(Module) ? given.name : given.inspect[0, 60]
        raise DeclarationError.new("#{@owner.name} #{macro} #{name.inspect}: resource: #{shown} is no resource; name a subclass of " \
                                   "Castellan::Resource", location: location)
      end

      def find(resource)
        case resource
        when Class then resource_class(resource)
        when Proc then resource_class(resource.call)
        else
          name_of_class = resource || "#{Inflector.classify(name, to_many: to_many?)}Resource"
          ResourceName.new(name_of_class, owner: @owner, location: location).resolve
        end
      end
    end
  end
end
