# frozen_string_literal: true

module Castellan
  class Keeper
    # Computes the cache key of a repeated request without planning or rendering the document.
    #
    #   request_key = RequestKey.for(keeper, rendering)   # => nil if the key depends on more
    #   request_key.find(:all, viewer).key                # => as {Keeper#key}; nil: call that instead
    #
    # Reads what may differ between requests: the version, the scope's identity and the surroundings of custom
    # code. Threads share it and may overwrite each other's memo; each uses the value that it computed or
    # found.
    class RequestKey
      NO_VALUES = [].freeze
      LONGEST_FIELD = 100 # bytes of an Accept-Encoding that is kept
      # Memoizes what the identity of a scope determines in one {Rows::Scopes#default_context}. `parts` are
      # those of a key with {Serialize.escape}, and without, if no custom code reads its surroundings.
      Located = Struct.new(:context, :values, :statement, :dependencies, :parts)
      # The last key of a {Located}, of these parts and this version.
      Found = Struct.new(:located, :parts, :versions, :reading, :last, :connection)
      private_constant :NO_VALUES, :LONGEST_FIELD, :Located, :Found

      # @return [Plan::FetchPlan]
      # @return [String] the Content-Type of the document
      attr_reader :plan, :media_type

      # @param rendering [Document::Rendering] of a cached document that was sent
      # @return [RequestKey, nil] nil if documents may be stale, or need a rendering for their key
      def self.for(keeper, rendering)
        caching = rendering.definition.caching
        new(keeper, rendering) if caching && !caching.stale? && rendering.kept? && rendering.keyed_by_request?
      end

      def initialize(keeper, rendering)
        @keeper = keeper
        @kind = rendering.definition.caching.kind
        @expires_in = rendering.definition.caching.expires_in&.to_f
        @plan = rendering.plan
        @personal = @plan.holes.any?
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
        @found = nil
        @chosen = [nil, nil].freeze # Accept-Encoding and coding of the last request
      end

      # @param given [Object] :all, or the application's relation or dataset
      # @param viewer [Object, nil]
      # @return [KeptStatement::Last, nil] the key and its entity tags; nil if a rendering is needed
      def find(given, viewer)
        located = all_in_default_context if :all.equal?(given)
        located ||= located(nil, identity(given)) or return
        parts = parts(located, viewer)
        found = @found
        return found.last if found && found.located.equal?(located) && found.parts == parts &&
                             found.connection == @scopes.connection_name && found.versions.unchanged?(found.reading)

        versions = @keeper.versions_of(@kind, @adapter.model)
        version = versions&.current(located.dependencies) or return
        located.statement.last(version, parts).tap { |last| remember(located, parts, versions, version, last) }
      end

      # @return [Float, nil] seconds after which the document is written again
      attr_reader :expires_in

      # @return [Boolean] whether the document is stored in content codings
      def codings? = !@codings.empty?

      # Memoizes the coding of the last request.
      # @param accept_encoding [String, nil] the header field
      # @yieldparam codings [Array<String>] in which the document is stored
      # @yieldreturn [String, nil] the coding of the response; nil: none
      # @return [String, nil]
      def coding(accept_encoding)
        accepted, coding = @chosen
        return coding if accepted == accept_encoding

        coding = yield @codings
        @chosen = [accept_encoding.dup, coding].freeze if accept_encoding.nil? || accept_encoding.bytesize <= LONGEST_FIELD
        coding
      end

      # @return [Boolean] whether the document has per-viewer values
      def personal? = @personal

      # @return [Array, nil] see {Keeper#viewer_versions}
      def viewer_versions(viewer) = @keeper.viewer_versions(@plan, viewer, @kind, @adapter)

      # @param viewer [Object, nil]
      # @param written [Document::Rendering::Written]
      # @param key [String] of the document
      # @param versions [Array, nil] see {#viewer_versions}
      # @return [Array<String>] JSON text for each of the document's blanks
      def viewer_values(written, viewer, key, versions)
        return NO_VALUES unless (blanks = written.blanks)

        @keeper.viewer_values(key, versions, blanks) { blanks.values(Document::ViewerBlocks.for(@plan, @adapter), viewer) }
      end

      private

      # Only in the default context, because {Versions::NotifiedVersions#unchanged?} relies on it.
      def remember(located, parts, versions, version, last)
        return unless located.parts && versions.is_a?(Versions::NotifiedVersions)

        reading = versions.reading(located.dependencies, version)
        @found = reading && Found.new(located, parts, versions, reading, last, @scopes.connection_name).freeze
      end

      # @return [Located, nil] nil outside the default context
      def all_in_default_context
        context = @scopes.default_context
        return if context.nil?

        last = @all_located
        return last if last && last.context.equal?(context)

        @all_located = located(context, identity(:all))
      end

      # @return [Located, nil] nil until a rendering has memoized the statement and its parts
      def located(context, identity)
        statement = @statements[identity.first] if identity
        parts = @parts ? @parts[[identity, @id]] : NO_VALUES if statement
        return unless parts

        keys = Serialize::ESCAPES.to_h { |escape| [escape, [identity.last, @fixed, escape, nil].freeze] } unless context.nil?
        Located.new(context, identity.last, statement, statement.dependencies(parts), keys).freeze
      end

      # @return [Array] the same for equal requests, if it can be, because it is compared each time
      def parts(found, viewer)
        surroundings = @code.surroundings(viewer)
        return [found.values, @fixed, Serialize.escape, surroundings] if surroundings || found.parts.nil?

        found.parts.fetch(Serialize.escape)
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
