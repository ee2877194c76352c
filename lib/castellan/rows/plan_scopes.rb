# frozen_string_literal: true

module Castellan
  module Rows
    # Collects the resource scopes that apply to a plan: to its nodes, linkage and paths.
    #
    #   scopes = PlanScopes.of(plan, adapter)
    #   scopes.any?             # => true
    #   scopes.along(column)    # => [Definition, nil], the scoped resource for each step of the column's path
    #
    # Frozen, one per plan.
    class PlanScopes
      LIBRARY = /\A(?:ActiveRecord|Sequel)::/
      ALL = ["all", [].freeze].freeze
      private_constant :LIBRARY, :ALL

      class << self
        def of(plan, adapter)
          plan.derive([:plan_scopes, adapter.model]) { new(plan, adapter) }
        end

        # Finds the resource whose scope applies to each step of a `from:` path: the relationship's resource,
        # otherwise the only resource with a scope, its own or of its `types`, of the association's model.
        # `EmployeeResource` is looked up (and autoloaded) by its name; a resource of `Employee` with another
        # name must be loaded at boot, or be named by a relationship.
        # @param definition [Resource::Definition, nil] a definition of the model where the path begins
        # @return [Array<Resource::Definition, nil>] one for each step
        # @raise [DeclarationError] if several resources of a model have scopes and
        #   no relationship picks one of them
        def resources_along(definition, adapter, path, location: nil)
          owner = definition
          path.map do |name|
            association = adapter&.association(name)
            declaring = definition
            definition = declared(declaring, name, association&.model)
            definition ||= by_model(owner, name, association&.model, location).tap do |found|
              refuse_several(declaring, name, found, location) if association&.model
            end
            adapter = association && association.reason.nil? ? association.adapter : nil
            definition
          end
        end

        private

        def declared(definition, name, model)
          found = relationships(definition, name).reject(&:named_several?).map(&:definition)
                                                 .select { |related| model.nil? || related.model == model }
          found.find(&:hides_rows?) || found.first
        end

        def relationships(definition, name)
          all = definition ? definition.relationships.values : []
          all.select { |relationship| relationship.association_name == name && relationship.block.nil? }
        end

        # A path follows one resource, so it cannot apply a scope that only one of several resources has.
        def refuse_several(definition, name, found, location)
          several = relationships(definition, name).select(&:named_several?).flat_map(&:definitions)
          scoped = several.find { |one| one.scope && !one.scope.equal?(found&.scope) } or return

          raise DeclarationError.new("#{definition.name}: from: walks #{name}, which has several resources, and #{scoped.name} has a " \
                                     "scope: declare one resource with `types` (#{several.map(&:name).join(", ")}) and name it " \
                                     "instead", location: location)
        end

        def by_model(owner, name, model, location)
          return unless model

          load_conventional(owner, model)
          all = Resource.descendants.select { |one| (one.declarations.scope || one.declarations.types) && live?(one) }
          found = hiding(all.select { |resource| model == resource.declarations.model })
          found = hiding(all.select { |resource| above?(resource.declarations.model, model) }) if found.empty?
          return found.first&.definition if found.map { |resource| resource.declarations.scope }.uniq.size < 2

          raise DeclarationError.new("#{owner.name}: from: walks #{name}, and several resources of #{model} have a scope " \
                                     "(#{found.map(&:name).sort.join(", ")}): declare which is meant, " \
                                     "`belongs_to :#{name}, resource: #{found.first.name.inspect}, include: false`", location: location)
        end

        # A resource with `types` stands for them, too.
        def hiding(resources)
          found = resources.select { |resource| resource.declarations.scope || resource.definition.hides_rows? }
          types = found.select { |resource| resource.declarations.types }.flat_map { |resource| resource.definition.types }
          types.empty? ? found : found.reject { |resource| types.include?(resource.definition) }
        end

        # Autoloads the resources that are named like the model and, with STI, like its superclasses.
        def load_conventional(owner, model)
          resource = Resource.descendants.find { |one| one.name == owner&.name }
          return unless resource&.name && model.is_a?(Class)

          model.ancestors.grep(Class).take_while { |one| one.name && !LIBRARY.match?(one.name) }.each do |one|
            Resource::ResourceName.new("#{one.name.split("::").last}Resource", owner: resource, location: nil).resolve
          rescue DeclarationError
            nil # no such resource
          end
        end

        # With STI, the scope of a superclass's resource applies to the rows of its subclasses.
        def above?(superclass, model)
          superclass.is_a?(Class) && model.is_a?(Class) && model < superclass
        end

        # Ignores anonymous and reloaded classes.
        def live?(resource)
          resource.name && Object.const_defined?(resource.name) && Object.const_get(resource.name).equal?(resource)
        end
      end

      def initialize(plan, adapter)
        @adapter = adapter
        @along = {}.compare_by_identity
        @definitions = []
        visit(plan.root, adapter)
        @definitions = @definitions.uniq.freeze
        @along.freeze
        @on_paths = @along.values.flatten.compact.uniq.freeze
        freeze
      end

      def any? = @definitions.any?

      # @param column [Plan::Node::Column] a column of one of the plan's nodes
      # @return [Array<Resource::Definition, nil>, nil] one for each step; nil if none has a scope
      def along(column) = @along[column]

      # Calls every scope of the plan, so that errors are raised before any query.
      def call(scopes) = @definitions.each { |definition| scopes.of(definition, @adapter) }

      # @return [Array<Boolean>] whether each scope along a path hides rows from the viewer
      def hiding(scopes) = @on_paths.map { |definition| !scopes.along(definition, @adapter).nil? }

      # @return [Boolean] whether a scope applies along a path
      def along_paths? = @on_paths.any?

      # @return [Array<String>] their SQL
      def sql(scopes) = @definitions.map { |definition| scopes.of(definition, @adapter)&.subquery || "all" }

      # @return [Array<Array(String, Array)>] see {Scopes#identity}
      def identities(scopes) = @definitions.map { |definition| scopes.of(definition, @adapter)&.identity || ALL }

      private

      def visit(node, adapter)
        scoped(node.definition)
        node.columns.each { |column| path(node, adapter, column) unless column.own? }
        node.edges.each do |edge|
          edge.relationship.definitions.each { |definition| scoped(definition) }
          edge.nodes.each { |below| visit(below, Rows.related(adapter, edge.relationship, below.definition)) }
        end
      end

      def path(node, adapter, column)
        found = PlanScopes.resources_along(node.definition, adapter, column.path).map { |definition| definition if definition&.hides_rows? }
        return if found.none?

        @along[column] = found.freeze
        found.compact.each { |definition| [definition, *definition.types].each { |one| scoped(one) } }
      end

      def scoped(definition)
        @definitions << definition if definition.scope
      end
    end
  end
end
