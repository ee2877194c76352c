# frozen_string_literal: true

module Castellan
  class Document
    # Tells apart a scope and records that `Resource.document` was given. Not in {OfResource}, whose methods are inherited by the
    # application's classes.
    module Given
      class << self
        # Compares with :all by identity, because `==` of an association would load it. A loaded relation is read again only where the
        # request narrows it.
        # @return [Boolean] whether records were given, and not a scope
        def records?(definition, given, request, id)
          return false if :all.equal?(given) || given.is_a?(Class) || (id && !given.nil?)
          return !Rows.scope?(given) unless given.respond_to?(:loaded?) && given.loaded?

          request.filters.empty? && request.sort.empty? && request.page.nil? && given.klass <= definition.model
        end

        # @return [RecordsRendering]
        # @raise [BadRequest] when a client wants others than the records that are given
        # @raise [ConfigurationError] when they lack what is to be written of them
        def of_records(definition, adapter, given, request:, **around)
          choice = request.chosen.first unless given.nil?
          Plan::Parameter.refuse(choice.name, "#{choice} cannot be asked for here: the records are given") if choice
          records = Rows::Records.of(given)
          suited = Rows.suited(adapter, records.to_a)
          rendering = RecordsRendering.new(definition, records, adapter: suited, request: request, **around)
          check(definition, records.to_a, readers(rendering.plan.root, suited)) unless suited.equal?(adapter) && adapter.model
          rendering
        end

        # @param scopes [Rows::ViewerScopes]
        # @return [Object] the relation or dataset, narrowed to what the viewer may see
        # @raise [ConfigurationError]
        def scope(definition, adapter, given, scopes)
          raise ConfigurationError, "#{definition.name} has no model: write `model User` in its body, or give document the records" \
            unless definition.model

          return scopes.narrow(definition, adapter) if :all.equal?(given)

          scope = given
          scope = adapter.scope(scope) if scope.is_a?(Class) || Rows.scope?(scope)
          adapter.scope?(scope) ? scopes.narrow(definition, adapter, scope) : refuse(definition, "got #{named(scope)}")
        end

        private

        # Any object with an id may be a record; a record of another model must respond to every member that is written.
        def readers(node, adapter)
          return [node.definition.id_column].flatten unless adapter.model

          walked = node.edges.select(&:data).map(&:relationship).reject(&:block)
          [*node.columns.select(&:own?), *walked].map(&:name).flatten
        end

        def check(definition, records, readers)
          records.each do |record|
            missing = record.is_a?(Hash) ? [] : readers.reject { |name| record.respond_to?(name) }
            refuse(definition, "or records that have #{missing.join(", ")}, got #{record.inspect[0, 60]}") if missing.any?
          end
        end

        def refuse(definition, text)
          raise ConfigurationError, "#{definition.name} is declared on #{named(definition.model)}; " \
                                    "give document a scope of that, #{text}"
        end

        # Does not call inspect of a relation, which would load it.
        def named(given)
          return given.name || "a class without a name" if given.is_a?(Module)

          model = given.respond_to?(:klass) ? given.klass : (given.model if given.respond_to?(:model))
          model ? "records of #{model.name}" : given.inspect[0, 60]
        end
      end
    end
  end
end
