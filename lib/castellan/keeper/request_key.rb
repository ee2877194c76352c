# frozen_string_literal: true

module Castellan
  class Keeper
    # Computes the cache key of a repeated request without planning or rendering the document.
    #
    #   request_key = RequestKey.for(keeper, rendering)   # => nil if the key depends on more
    #   request_key.find(:all, viewer).last.key           # => as {Keeper#key}; nil: call that instead
    #
    # Reads what may differ between requests: the version, the scope's identity and the surroundings of custom
    # code. Threads share it and may overwrite each other's memo; each uses the value that it computed or
    # found.
    class RequestKey
      NO_VALUES = [].freeze
      # @return [Integer] bytes of an Accept-Encoding for which a response is memoized
      LONGEST_FIELD = 100
      # @return [Integer] Accept-Encodings of one request
      MOST_FIELDS = 8
      # Values, statement and dependencies, which follow from the identity of a scope.
      Located = Struct.new(:values, :statement, :dependencies)
      # The key and its entity tags, `last` (see {KeptStatement::Last}), and what they were computed from. `reading`
      # is that of {Versions::NotifiedVersions#reading} in a {Rows::Scopes#default_context}, else nil.
      Found = Struct.new(:context, :escape, :surroundings, :located, :last, :connection, :versions, :reading)
      # The versions of the tables of per-viewer attributes, and a reading of each.
      OfTables = Struct.new(:address, :tokens, :versions, :readings)
      private_constant :NO_VALUES, :Located, :Found, :OfTables

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
        @varying = @personal || !@expires_in.nil?
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
        @tables = Document::ViewerBlocks.tables(@plan)&.map { |table| keeper.whole_table(table) }
        @found = nil
        @of_tables = nil
        @made = nil
      end

      # @param given [Object] :all, or the application's relation or dataset
      # @param viewer [Object, nil]
      # @return [Found, nil] its `last` is the key with its entity tags; nil if a rendering is needed
      def find(given, viewer)
        escape = Serialize.escape
        surroundings = @code.surroundings(viewer)
        context = @scopes.default_context if :all.equal?(given)
        unless context.nil?
          found = @found
          found = nil unless found && found.context.equal?(context) && found.escape.equal?(escape) && found.surroundings == surroundings
          return found if found && (reading = found.reading) && found.connection == @scopes.connection_name &&
                          found.versions.unchanged?(reading)
        end
        located = found ? found.located : located(identity(given)) or return
        versions = @keeper.versions_of(@kind, @adapter.model)
        version = versions&.current(located.dependencies) or return
        last = found.last if found && found.last.version == version
        reading = versions.reading(located.dependencies, version) if !context.nil? && versions.is_a?(Versions::NotifiedVersions)
        return found if last && reading.nil? && found.reading.nil?

        last ||= located.statement.last(version, [located.values, @fixed, escape, surroundings])
        connection = @scopes.connection_name unless context.nil?
        newer = Found.new(context, escape, surroundings, located, last, connection, versions, reading).freeze
        @found = newer unless context.nil? || (reading.nil? && found && found.last.equal?(last))
        newer
      end

      # @return [KeptStatement::Last, nil] the last result of {#find} for all rows in a default context
      def last = @found&.last

      # @return [Float, nil] seconds after which the document is written again
      attr_reader :expires_in

      # Memoizes what depends on Accept-Encoding and the key.
      # @param last [KeptStatement::Last] the result of {#find}
      # @param accept_encoding [String, nil] the header field
      # @yieldparam codings [Array<String>] in which the document is stored
      # @yieldreturn [Object]
      def of_coding(last, accept_encoding)
        made_for, made = @made
        unless last.equal?(made_for)
          made = {}
          @made = [last, made].freeze
        end
        known = made[accept_encoding] and return known

        value = yield @codings
        made[accept_encoding.dup] = value if made.size < MOST_FIELDS && (accept_encoding.nil? || accept_encoding.bytesize <= LONGEST_FIELD)
        value
      end

      # @return [Boolean] whether the document has per-viewer values
      def personal? = @personal

      # @return [Boolean] whether equal keys may stand for different bytes
      def varying? = @varying

      # @param viewer [Object, nil]
      # @param found [Found] the result of {#find} in this request
      # @return [Array, nil] see {Keeper#viewer_versions}
      def viewer_versions(viewer, found)
        memoized = (@of_tables if found.reading) # then the thread uses the default database, outside of a transaction
        if memoized&.readings&.all? { |reading| memoized.versions.noticed_none?(reading) }
          identity = Document::ViewerBlocks.identity(viewer)
          return identity && [memoized.address, identity, *memoized.tokens]
        end
        parts = @keeper.viewer_versions(@plan, viewer, @kind, @adapter)
        note_tables(parts, found) if parts && @tables && found.reading
        parts
      end

      # @param written [Document::Rendering::Written]
      # @param viewer [Object, nil]
      # @param known [ViewerValues, nil] nil: read them
      # @return [Array<String>] JSON text for each of the document's blanks
      def viewer_values(written, viewer, known)
        blanks = written.blanks or return NO_VALUES
        read = -> { blanks.values(Document::ViewerBlocks.for(@plan, @adapter), viewer) }
        known ? known.values(blanks, &read) : read.call
      end

      private

      def note_tables(parts, found)
        address, _identity, *tokens = parts
        versions = found.versions
        readings = @tables.zip(tokens).map { |dependencies, token| versions.reading(dependencies, token) }
        @of_tables = OfTables.new(address, tokens, versions, readings).freeze if readings.all?
      end

      # @return [Located, nil] nil until a rendering has memoized the statement and its parts
      def located(identity)
        statement = @statements[identity.first] if identity
        parts = @parts ? @parts[[identity, @id]] : NO_VALUES if statement
        Located.new(identity.last, statement, statement.dependencies(parts)).freeze if parts
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
