# frozen_string_literal: true

module Castellan
  class Resource
    # Finds the resource of a relationship: in the namespace of its owner, in those around it, then in those of the owner's superclasses.
    #
    #   ResourceName.new("RoleResource", owner: Admin::UserResource, location: "…:4").resolve  # => Admin::RoleResource or ::RoleResource
    #
    # Uses ActiveSupport's inflections where they are loaded, else a few rules of English.
    class ResourceName
      # @param name [Symbol, String] an association's name, e.g. :group_assignments
      # @return [String] "GroupAssignment"
      def self.classify(name)
        singular = singularize(name.to_s)
        singular.split("_").map { |word| word[0].upcase + word[1..] }.join
      end

      # @return [String]
      def self.singularize(word)
        return ActiveSupport::Inflector.singularize(word) if defined?(ActiveSupport::Inflector)

        case word
        when /ies\z/ then word.sub(/ies\z/, "y")
        when /(ss|sh|ch|x)es\z/ then word.sub(/es\z/, "")
        when /ss\z/ then word
        else word.sub(/s\z/, "")
        end
      end

      # @return [String]
      def self.pluralize(word)
        return ActiveSupport::Inflector.pluralize(word) if defined?(ActiveSupport::Inflector)

        case word
        when /[^aeiou]y\z/ then word.sub(/y\z/, "ies")
        when /(s|sh|ch|x)\z/ then "#{word}es"
        else "#{word}s"
        end
      end

      # @return [String] "GroupAssignment" → "group_assignment"
      def self.underscore(name)
        name.gsub("::", "/").gsub(/([A-Z\d]+)([A-Z][a-z])/, '\1_\2').gsub(/([a-z\d])([A-Z])/, '\1_\2').downcase
      end

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

      # Without namespaces, unless the declaration has one.
      def known
        names = Resource.descendants.filter_map(&:name)
        @name.include?("::") ? names.uniq : names.map { |name| name.split("::").last }.uniq
      end
    end
  end
end
