# frozen_string_literal: true

module Castellan
  class Resource
    # Finds a relationship's resource in the namespaces of its owner and of the owner's superclasses.
    #
    #   name = ResourceName.new("RoleResource", owner: Admin::UserResource, location: "…:4")
    #   name.resolve   # => Admin::RoleResource or ::RoleResource
    class ResourceName
      def initialize(name, owner:, location:)
        @name = name
        @owner = owner
        @location = location
      end

      # @return [Class]
      # @raise [DeclarationError]
      def resolve
        namespaces.each do |namespace|
          found = constant_in(namespace)
          return found if found
        end
        raise DeclarationError.new("#{@owner.name || "a resource"} needs #{@name}, which is not defined#{Nearest.hint(@name, known)}; " \
                                   "define it or name another with resource:", location: @location)
      end

      private

      def namespaces
        owners = @owner.ancestors.take_while { |ancestor| ancestor != Resource }.grep(Class)
        owners.flat_map { |owner| around(owner.name.to_s.split("::")[0...-1]) } << Object
      end

      def around(parts)
        parts.size.downto(1).map { |size| Object.const_get(parts.first(size).join("::")) }
      end

      def constant_in(namespace)
        found = namespace.const_get(@name, namespace == Object)
        found if found.is_a?(Class) && found <= Resource
      rescue NameError => error
        raise unless error.name && @name.split("::").include?(error.name.to_s)
      end

      # Names without namespaces, unless the declaration has one.
      def known
        names = Resource.descendants.filter_map(&:name)
        @name.include?("::") ? names.uniq : names.map { |name| name.split("::").last }.uniq
      end
    end
  end
end
