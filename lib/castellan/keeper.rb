# frozen_string_literal: true

require_relative "active_record_thread"
require_relative "call_site"
require_relative "option_check"
require_relative "short_inspect"
require_relative "document"
require_relative "cache"
require_relative "versions"

module Castellan
  # Caches documents between requests, under keys that contain the version of the tables.
  #
  #   Castellan.keep(store: Castellan::Store::MemoryStore.new,
  #                  versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base))
  #
  # The version is read before the data, so cached bytes are never older than their key and need no
  # invalidation. A document is not cached if its tables or their version are unknown.
  class Keeper
    include ShortInspect

    # Bytes; statements of longer shapes are not memoized, because clients write the filters.
    LONGEST_SHAPE = 4_096
    SPLICED = %w[gzip].freeze # the only coding whose pieces can be joined around values
    MOST_REQUESTS = 2_000
    MOST_REPEATED = 200 # queries of an endpoint; the others take more steps
    MOST_VIEWERS = 4_000 # entries in memory, each with the values of one viewer in one document
    private_constant :LONGEST_SHAPE, :SPLICED, :MOST_REQUESTS, :MOST_REPEATED, :MOST_VIEWERS

    # @param store [Object] see {Store.for}
    # @param versions [#current] see {Versions}
    # @param revision [String, nil] the revision of the application's code, part of every key; default: see
    #   {Revision}
    # @param log [#call, nil] called with a line when the store fails
    # @param compress [Array<String>, nil] content codings in which documents are also stored: "br", "zstd",
    #   "gzip"; nil: gzip, plus the other two if the gems brotli and zstd-ruby are installed; []: none
    # @raise [ConfigurationError] if an option is invalid
    def initialize(store:, versions:, revision: nil, log: nil, compress: nil)
      unless versions.respond_to?(:current)
        raise ConfigurationError, "Castellan.keep versions: must respond to current, got #{Store.shown(versions)}; " \
                                  "write for example Castellan::Versions::ExactVersions.new(ActiveRecord::Base)"
      end

      @versions = versions
      @exact = versions.is_a?(Versions::NotifiedVersions) ? versions.exact : versions
      @of_one_database = versions.respond_to?(:of?)
      @revision = Revision.new(revision)
      store = Store::FailSafe.new(store, log: OptionCheck.log("Castellan.keep", log), name: "Castellan.keep store:")
      @memory = store.memory
      @layer = Cache::DocumentLayer.new(store: store)
      @forms = Cache::DocumentLayer.new(store: store, name: :form)
      @codings = (compress.nil? ? Cache::Compression.available : Cache::Compression.check(compress)).freeze
      forget_requests
      @viewer_values = BoundedCache.new(limit: MOST_VIEWERS)
      @whole_tables = BoundedCache.new # dependencies by table
      @outage = Outage.new(@layer)
      @application_cache = ApplicationCache.new(store: store, versions: versions, revision: @revision, log: log)
    end

    # @return [Boolean] whether no recording and no subscriber needs to know of hits
    def self.unobserved?
      !(Castellan.off? || Recording.current || Cache::Events.subscribed?)
    end

    # @return [Boolean] whether `scoping(all_queries: true)` or `unscoped` may change which rows of other models a document has
    def self.scoped?
      defined?(::ActiveRecord::Scoping) ? ActiveRecordThread.associations_scoped? : false
    end

    # @return [ApplicationCache] the cache for other serializers, see {Castellan.cache}
    # @return [Store::MemoryStore, nil] the store in this process, if there is one
    attr_reader :application_cache, :memory

    # Digests the source of a resource at boot, while the files still match the loaded code; a newer
    # deployment may have replaced them before the first request.
    # @param definition [Resource::Definition]
    def learn(definition)
      return unless definition.caching

      @revision.to_s
      SourceDigest.of(definition)
    end

    # @param version [String] see {Revision#migrated_to}
    def migrated_to(version) = @revision.migrated_to(version)

    # Ignores all entries written so far, after a code reload.
    def renew_revision
      @revision.renew
      forget_requests
    end

    # @param request [Array] the endpoint, the path of the mount point, the id and the query string
    # @return [RequestKey, nil] nil before {#note_request}, with CASTELLAN=off, during a recording, and if
    #   cache events have a subscriber
    def request_key(request)
      @request_keys[request] if Keeper.unobserved? && !Keeper.scoped?
    end

    # @param endpoint [Serve::Endpoint]
    # @return [BoundedCache] its {Serve::Repeat}s by query and Accept-Encoding; another one after {#renew_revision}
    def repeats(endpoint)
      @repeats[endpoint] ||= BoundedCache.new(limit: MOST_REPEATED)
    end

    # Remembers how to compute the key of a document when the same request arrives again.
    # @param request [Array] see {#request_key}
    # @param rendering [Document::Rendering] of the response
    def note_request(request, rendering)
      @request_keys.fetch(request) { RequestKey.for(self, rendering) }
    end

    # Reads a document from the store.
    # @param plan [Plan::FetchPlan]
    # @param key [String]
    # @param coding [String, nil] the content coding; nil: uncompressed
    # @param of [Document::Rendering::Written, nil] for a coding of a document that expires: the document
    # @return [Document::Rendering::Written, nil] frozen; nil if the store does not have it
    def kept(plan, key, coding, of: nil)
      return @layer.decoded(key) { |entry| load(entry, plan.holes.size).freeze } unless coding

      @forms.decoded(stored_key(key, coding, of)) { |entry| load(entry, plan.holes.size, form: true).freeze }
    end

    # @param of [Document::Rendering::Written, nil] see {#kept}
    # @return [String] the key in the store
    def stored_key(key, coding, of = nil)
      return key unless coding

      of ? "#{key}.#{of.made_ms}.#{coding}" : "#{key}.#{coding}"
    end

    # Reads a document that expires.
    # @param plan [Plan::FetchPlan]
    # @param key [String]
    # @param expires_in [Numeric] seconds
    # @return [Document::Rendering::Written, nil] frozen; nil as well if it has expired, or if it may have to be
    #   computed early (see {Cache::DocumentLayer})
    def kept_for_now(plan, key, expires_in)
      kept = @layer.decoded(key) do |entry|
        load(entry, plan.holes.size).tap { |written| written&.until_ms = entry.surely_fresh_until_ms(expires_in) }.freeze
      end
      kept if kept && Clock.wall_ms < kept.until_ms
    end

    # @param kind [Symbol] :exact or :notified
    # @param model [Object] the model of a document
    # @return [#current, nil] the versions for its keys; nil if the model is in another database
    def versions_of(kind, model)
      versions(kind) unless elsewhere?(model)
    end

    # Returns the version of the table unless the value is an integer or a UUID and the database PostgreSQL.
    # @param table [String, Symbol]
    # @param column [String, Symbol, nil] nil: all rows
    # @param value [Object, nil] of the column
    # @param kind [Symbol] :exact or :notified
    # @param adapter [Rows::Adapter] of the document; the table is in its database
    # @return [String, nil] the version of the rows; nil if it is unknown or the table in another database
    def version_of_rows(table, column, value, kind, adapter)
      return if elsewhere?(adapter.model)

      counted = column && adapter.dialect.name == :postgres && (value.is_a?(Integer) || (value.is_a?(String) && Rows::Ids::UUID.match?(value)))
      return versions(kind).current([Versions::Dependency.new(table, by: column.to_s, value: value)]) if counted

      versions(kind).current(whole_table(table))
    end

    # @param table [String, Symbol]
    # @return [Array<Versions::Dependency>] on all rows of the table
    def whole_table(table) = @whole_tables.fetch(table) { [Versions::Dependency.new(table)].freeze }

    # @param plan [Plan::FetchPlan]
    # @return [BoundedCache] the memoized statements of the plan, by the shape of the scope
    def kept_statements(plan)
      plan.derive([:kept_statements, @revision.to_s]) { BoundedCache.new }
    end

    # @param rendering [Document::Rendering]
    # @return [String, nil] digest of all that the bytes depend on, except per-viewer values; nil: not cached
    def key(rendering)
      return if Castellan.off?

      source = SourceDigest.of(rendering.definition) or return
      return if elsewhere?(rendering.adapter.model) || rendering.custom_code.obstacles.any?

      tables = rendering.tables or return
      return unless tables.all? { |table| Versions::Dependency.name?(table) } # "Order Details" has no version

      kept = kept_statement(rendering, source, tables)
      versions = versions(rendering.definition.caching.kind)
      @outage.key(freshness(rendering.definition), -> { latest(rendering) }) do |failed|
        version = versions.current(kept.dependencies(rendering.parts), &failed)
        version && kept.key(version, rendering.values)
      end
    end

    # @param rendering [Document::Rendering] of a document that can be cached
    # @return [String, nil] the version of its tables, for `castellan cache explain`
    def version(rendering)
      kept = kept_statement(rendering, SourceDigest.of(rendering.definition), rendering.tables)
      versions(rendering.definition.caching.kind).current(kept.dependencies(rendering.parts))
    end

    # @param rendering [Document::Rendering]
    # @return [String, nil] the key without the version; nil if documents are never served stale
    def latest(rendering)
      return unless rendering.definition.caching.stale?

      kept_statement(rendering, SourceDigest.of(rendering.definition), rendering.tables).key(address, rendering.values)
    end

    # @param key [String]
    # @param further [Array, String, nil] what else the bytes depend on
    # @param coding [String, nil] the content coding
    # @return [String] an entity tag
    def etag(key, further = nil, coding = nil)
      key = Cache::Key.for([key, further]) if further
      Cache::Key.etag(key, coding)
    end

    # @param rendering [Document::Rendering]
    # @param key [String]
    # @return [Document::Rendering::Written] its key is that of the previous version if it is served stale
    def fetch(rendering, key)
      written = nil
      entry = @layer.find(key, freshness: freshness(rendering.definition), latest: latest(rendering)) do
        dump(written = write(rendering))
      end
      return written || write(rendering) unless entry

      if written && entry.key == key
        written.key = key
        written.made_ms = entry.made_ms
        written.stored = entry.stored?
        return written
      end

      load(entry, rendering.plan.holes.size) || written || write(rendering)
    end

    # @param rendering [Document::Rendering]
    # @return [Array<String>] the content codings in which its document is stored, preferred first
    def codings(rendering)
      rendering.plan.holes.empty? ? @codings : @codings & SPLICED
    end

    # @param rendering [Document::Rendering]
    # @param key [String] of the bytes, see {#fetch}
    # @param coding [String] one of {#codings}
    # @return [Document::Rendering::Written] the document in this coding, from the store or compressed now
    def form(rendering, key, coding)
      made = nil
      entry = @forms.find(form_key(rendering, key, coding), freshness: freshness(rendering.definition)) do
        dump(made = compressed(rendering.written, coding))
      end
      made || (entry && load(entry, rendering.plan.holes.size, form: true)) || compressed(rendering.written, coding)
    end

    # @param plan [Plan::FetchPlan]
    # @param viewer [Object, nil]
    # @param kind [Symbol] :exact or :notified
    # @param adapter [Object]
    # @return [Array, nil] parts of a cache key for the per-viewer values, see {Document::ViewerBlocks.versions}
    def viewer_versions(plan, viewer, kind, adapter)
      versions = Document::ViewerBlocks.versions(plan, viewer) { |*rows| version_of_rows(*rows, kind, adapter) }
      versions&.unshift(address)
    end

    # Inserts per-viewer values into the placeholders of a document.
    # @param kept [Document::Rendering::Written]
    # @param values [Array<String>, nil] JSON text for each of its blanks
    # @return [String] the bytes of a response; of its own, because a middleware may change them
    def filled(kept, values)
      return kept.body.dup unless (blanks = kept.blanks)

      kept.sums ? Cache::SplicedGzip.fill(kept.body.unpack(blanks.cuts), kept.sums, values) : blanks.fill(kept.body, values)
    end

    # @param key [String] of the document's bytes
    # @param versions [Array] see {#viewer_versions}; contain the viewer's class and id
    # @param tag [String, nil] the document's, if it expires
    # @return [ViewerValues]
    def known_values(key, versions, tag = nil)
      further = tag ? [tag, versions] : versions
      @viewer_values.fetch([key, further]) { ViewerValues.new(Cache::Key.for([key, further])) }
    end

    # @param rendering [Document::Rendering]
    # @return [String, nil] why the document is currently not cached
    def reason(rendering)
      if Castellan.off? then "CASTELLAN=off"
      elsif SourceDigest.of(rendering.definition).nil? then "a class without a name has no identity that other processes share"
      elsif elsewhere?(rendering.adapter.model)
        "#{rendering.adapter.table} is in another database than the one whose versions are read: pass versions: of that database to " \
          "Castellan.keep, which caches the documents of one database"
      elsif key(rendering).nil? then unread(rendering)
      end
    end

    # @param plan [Plan::FetchPlan]
    # @return [Array<String>] the tables of `per_viewer … version:` that have no version, so that the values are read
    #   in each request
    def unversioned(plan)
      @exact.respond_to?(:missing) ? @exact.missing(Document::ViewerBlocks.declared_tables(plan)) : []
    end

    private

    def forget_requests
      @request_keys = BoundedCache.new(limit: MOST_REQUESTS)
      @repeats = {}.compare_by_identity
    end

    def unread(rendering)
      tables = rendering.tables || []
      odd = tables.reject { |table| Versions::Dependency.name?(table) }
      return "no version of #{odd.join(", ")}, because the name contains quotes or blanks" if odd.any?

      missing = @exact.respond_to?(:missing) ? @exact.missing(tables) : []
      return "the version of a table cannot be read (#{application_cache.failure(tables) || "does a transaction write?"})" if missing.empty?

      "the version of #{missing.join(", ")} cannot be read: #{Versions.advice(missing)}"
    end

    # A document that expires is written again with the same key, perhaps with other bytes.
    def write(rendering)
      ActiveRecordThread.clear_query_caches
      rendering.write.tap { |written| written.tag = Digest::SHA256.base64digest(written.body) if rendering.definition.caching.expires_in }
    end

    def versions(kind) = kind == :notified ? @versions : @exact

    # @return [String] the database and search path
    def address = @exact.respond_to?(:address) ? @exact.address : ""

    def freshness(definition)
      definition.derive(:freshness) { Cache::Freshness.new(**definition.caching.to_h.except(:kind, :by)) }
    end

    # If documents expire, a compressed form belongs to one rendering of its document and expires with it.
    def form_key(rendering, key, coding)
      caching = rendering.definition.caching
      return stored_key(key, coding) unless caching.expires_in || caching.stale?

      stored_key(rendering.written.key || key, coding, rendering.written)
    end

    # @return [Document::Rendering::Written]
    def compressed(written, coding)
      blanks = written.blanks
      return Document::Rendering::Written.new(Cache::Compression.call(coding, written.body), nil, written.found) unless blanks

      pieces = Cache::SplicedGzip.compress(written.body.unpack(blanks.cuts))
      cuts = pieces.bodies[..-2].map { |piece| "a#{piece.bytesize}" }.join << "a*"
      blanks = Serialize::Blanks.new(cuts, blanks.numbers, blanks.ids)
      Document::Rendering::Written.new(pieces.bodies.join, blanks, written.found, nil, nil, pieces.sums)
    end

    # Versions of one database implement `of?`, because a table of another database may have the same name.
    def elsewhere?(model)
      @of_one_database && !@versions.of?(model)
    end

    # Memoized by the scope's shape, which most requests to one endpoint share.
    def kept_statement(rendering, source, tables)
      shape = rendering.shape
      plan = rendering.plan
      revision = @revision.to_s
      make = -> { KeptStatement.new(tables, [VERSION, revision, source, shape, rendering.definition.name, plan.signature]) }
      return make.call if shape && shape.bytesize > LONGEST_SHAPE

      kept = kept_statements(plan).fetch(shape, &make)
      kept.of?(tables) ? kept : make.call
    end

    # @return [String, nil] nil if an id contains NUL, the separator of ids
    def dump(written)
      sums = written.sums ? { sums: written.sums } : {}
      Cache::Envelope.new(body: written.body, found: written.found, tag: written.tag, **written.blanks.to_h, **sums).dump
    end

    # Returns nil, a miss, for bytes in another format or with wrong numbers of holes.
    # @param form [Boolean] whether the bytes are compressed; with holes, they then have checksums
    def load(entry, count, form: false)
      kept = Cache::Envelope.load(entry.bytes) or return
      if kept.cuts
        return if kept.numbers.max >= count || kept.sums.empty? == form

        blanks = Serialize::Blanks.new(kept.cuts, kept.numbers, kept.ids)
      end
      # A String remembers, for its copies too, that it is binary or valid; else servers scan each copy.
      form ? kept.body.force_encoding(Encoding::BINARY) : kept.body.valid_encoding?
      Document::Rendering::Written.new(kept.body, blanks, kept.found, entry.key, entry.made_ms, (kept.sums if form && blanks), kept.tag)
    end
  end
end

require_relative "keeper/kept_statement"
require_relative "keeper/viewer_values"
require_relative "keeper/request_key"
require_relative "keeper/source_digest"
require_relative "keeper/revision"
require_relative "keeper/outage"
require_relative "keeper/application_cache"
