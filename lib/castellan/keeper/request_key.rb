# frozen_string_literal: true

module Castellan
  class Keeper
    # Makes the key of a document again, for further requests with its path and query, without a plan, statements and a rendering.
    #
    #   request_key = RequestKey.for(keeper, rendering)   # => nil where more may differ from request to request
    #   request_key.find(:all, viewer).key                # => what {Keeper#key} returns; nil: only that can tell
    #
    # Whatever may differ is read each time: the version, the scope's identity and the surroundings of the application's code.
    # Shared by all threads, which may overwrite each other's memo: each uses what it made or found.
    class RequestKey
      NO_VALUES = [].freeze
      # What follows from the identity of a scope, and the {Rows::Scopes#default_context} in which it holds.
      Located = Struct.new(:context, :values, :statement, :dependencies)
      private_constant :NO_VALUES, :Located

      # @return [Plan::FetchPlan]
      # @return [String] the Content-Type of the document
      # @return [Array<String>] content codings in which the document is kept
      attr_reader :plan, :media_type, :codings

      # @param rendering [Document::Rendering] of a document that is kept and was sent
      # @return [RequestKey, nil]
      def self.for(keeper, rendering)
        caching = rendering.definition.caching
        new(keeper, rendering) if caching && !caching.expires_in && !caching.stale? && rendering.kept? && rendering.keyed_by_request?
      end

      def initialize(keeper, rendering)
        @keeper = keeper
        @kind = rendering.definition.caching.kind
        @plan = rendering.plan
        @adapter = rendering.adapter
        @scopes = @adapter.scopes
        @all = @scopes.constant_identity
        @fixed = rendering.fixed_values.freeze
        @code = rendering.custom_code
        @id = rendering.id
        @parts = rendering.known_parts
        @statements = keeper.kept_statements(@plan)
        @media_type = rendering.media_type.freeze
        @codings = rendering.codings
        @all_located = nil
      end

      # @param given [Object] :all, or the relation or dataset that the application gives
      # @param viewer [Object, nil]
      # @return [KeptStatement::Last, nil] the key, and its entity tags
      def find(given, viewer)
        found = all_in_default_context if :all.equal?(given)
        found ||= located(nil, identity(given)) or return
        version = @keeper.versions_of(@kind, @adapter.model)&.current(found.dependencies) or return
        found.statement.last(version, [found.values, @fixed, Serialize.escape, @code.surroundings(viewer)])
      end

      # @return [Boolean] whether the document has values of its viewer
      def personal? = @plan.holes.any?

      # @return [Array, nil] see {Document::ViewerBlocks.versions}
      def viewer_versions(viewer)
        Document::ViewerBlocks.versions(@plan, viewer) { |*rows| @keeper.version_of_rows(*rows, @kind, @adapter) }
      end

      # @param viewer [Object, nil]
      # @param written [Document::Rendering::Written]
      # @param key [String] of the document
      # @param versions [Array, nil] see {#viewer_versions}
      # @return [Array<String>] the viewer's values in their places
      def viewer_values(written, viewer, key, versions)
        return NO_VALUES unless (blanks = written.blanks)

        @keeper.viewer_values(key, versions, blanks) { blanks.values(Document::ViewerBlocks.for(@plan, @adapter), viewer) }
      end

      private

      # @return [Located, nil] nil outside of the default context
      def all_in_default_context
        context = @scopes.default_context
        return if context.nil?

        last = @all_located
        return last if last && last.context.equal?(context)

        @all_located = located(context, identity(:all))
      end

      # @return [Located, nil] nil where the statement or its parts are not known yet
      def located(context, identity)
        statement = @statements[identity.first] if identity
        parts = @parts ? @parts[[identity, @id]] : NO_VALUES if statement
        Located.new(context, identity.last, statement, statement.dependencies(parts)).freeze if parts
      end

      def identity(given)
        return (@scopes.identity_of(@all) if @all && @scopes.unscoped?) if :all.equal?(given)
        return unless Rows.scope?(given) && !given.is_a?(Class) && !(given.respond_to?(:loaded?) && given.loaded?)

        given = @scopes.from(given)
        @scopes.identity(given, @plan) if @scopes.own?(given)
      end
    end
  end
end
