# frozen_string_literal: true

require "digest/sha2"
require "json"

module Castellan
  class Document
    # Writes the bytes of one {Document}, from the store or from rows.
    #
    #   rendering = Rendering.new(definition, scope, request: request, adapter: adapter, keeper: keeper)
    #   rendering.etag     # reads the version of the tables; writes the body if it cannot be cached
    #   rendering.body     # => the bytes, written once
    #   rendering.found?   # => false if one record was requested and does not exist
    #
    # Internal; applications use {Document}. Reads the version before the rows. Not thread-safe.
    class Rendering
      # The document without the viewer's values: its bytes, the placeholders (nil: none), and whether the
      # requested record exists. For cached bytes also the key and the time of writing; for gzip with
      # placeholders the checksums of its pieces, see {Cache::SplicedGzip}.
      Written = Struct.new(:body, :blanks, :found, :key, :made_ms, :sums, :tag, :until_ms, :stored)

      NO_BYTES = ""
      NO_VALUES = [].freeze
      NO_CODINGS = [].freeze
      UNCACHED = "each request reads the linkage of a relationship from the rows"
      RELOADED = ", another class of the same name: after a reload, look up the resource and the scope again"
      private_constant :NO_BYTES, :NO_VALUES, :NO_CODINGS, :UNCACHED, :RELOADED

      class << self
        # @param given [Object] the argument of `Resource.document`: a scope, records, `:all` or nil
        # @return [Rendering] a {RecordsRendering} for records
        # @raise [BadRequest] if a client filters, sorts or pages given records
        # @raise [ConfigurationError] if the scope or the records are not of the resource
        def for(definition, adapter, given, id:, request:, scopes:, **around)
          around = { request: request, scopes: scopes, **around }
          return UnionRendering.of_types(definition, adapter, given, id: id, **around) if definition.several_tables?
          return RecordsRendering.of_records(definition, adapter, given, **around) if records?(definition, given, request, id)

          new(definition, narrow(definition, adapter, given, scopes), adapter: adapter, id: id, **around)
        end

        # OpenSSL's SHA-256 is faster, if the application has loaded it.
        # @return [String] the ETag of bytes that are not cached
        def digest(body)
          bytes = defined?(OpenSSL::Digest) ? OpenSSL::Digest.digest("SHA256", body) : Digest::SHA256.digest(body)
          %("#{[bytes].pack("m0").tr("+/", "-_")[0, 32]}")
        end

        private

        # Compares with :all by identity, because `==` would load an association. A loaded relation is queried
        # again only if the request narrows it.
        def records?(definition, given, request, id)
          return false if :all.equal?(given) || given.is_a?(Class) || (id && !given.nil?)
          return !Rows.scope?(given) unless given.respond_to?(:loaded?) && given.loaded?

          request.filters.empty? && request.sort.empty? && request.page.nil? &&
            (definition.model.nil? || given.klass <= definition.model)
        end

        def narrow(definition, adapter, given, scopes)
          raise ConfigurationError, "#{definition.name} has no model: write `model User` in its body, or give document the records" \
            unless definition.model

          scope = visible(definition, adapter, given, scopes)
          definition.itself ? Rows::Inheritance.new(definition.itself, adapter).narrow(scope, scopes) : scope
        end

        def visible(definition, adapter, given, scopes)
          return definition.scope ? scopes.narrow(definition, adapter) : adapter.scopes.all if :all.equal?(given)

          scope = given
          scope = adapter.scopes.from(scope) if scope.is_a?(Class) || Rows.scope?(scope)
          return scopes.narrow(definition, adapter, scope) if adapter.scopes.own?(scope)

          refuse(definition, "got #{named(scope)}#{RELOADED if namesake?(model_of(scope), definition.model)}")
        end

        def namesake?(model, own) = !model.equal?(own) && own.is_a?(Class) && !own.name.nil? && model&.name == own.name

        def refuse(definition, text)
          raise ConfigurationError, "#{definition.name} is declared on #{named(definition.model)}; " \
                                    "give document a scope of that, #{text}"
        end

        def model_of(given) = given.respond_to?(:klass) ? given.klass : (given.model if given.respond_to?(:model))

        # Does not call `inspect`, which would load a relation.
        def named(given)
          return given.name || "a class without a name" if given.is_a?(Module)

          model = model_of(given)
          model ? "records of #{model.name}" : given.inspect[0, 60]
        end
      end

      # @return [Resource::Definition]
      # @return [Object] the rows adapter
      # @return [Plan::FetchPlan]
      # @return [Plan::Request]
      # @return [Object, nil] the viewer for whom per-viewer attributes are filled in
      # @return [Rows::ViewerScopes] which rows the viewer may see
      attr_reader :definition, :adapter, :plan, :request, :viewer, :scopes

      # @param keeper [Keeper, nil] nil caches nothing
      # @param together [Boolean, nil] see {Rows::Together}; nil: the resource's declaration applies
      def initialize(definition, scope, request:, adapter:, viewer: nil, id: nil, meta: nil, links: nil, keeper: nil,
                     scopes: Rows::ViewerScopes.new(viewer), together: nil)
        @definition = definition
        @scope = scope
        @adapter = adapter
        @viewer = viewer
        @id = id
        @meta = meta.nil? ? nil : object("meta", meta)
        @links = links.nil? ? nil : object("links", links)
        @keeper = keeper
        @scopes = scopes
        @together = together.nil? ? definition.together : Rows::Together.checked(together, "together:")
        @plan = Plan.compile(definition, request)
        @request = request
        if @plan.for_viewers?
          @request = request.seen_by(viewer)
          @plan = Plan.compile(definition, @request)
        end
        @comparisons = comparisons unless request.filters.empty?
        @cursor_page = cursor_page
      end

      # @return [String] UTF-8
      # @raise [EncodingError] with the record and member, if a value cannot be written
      def body
        @body ||= written.blanks ? written.blanks.fill(written.body, viewer_values) : written.body
      end

      # @return [Array<String>] the content codings in which the document is cached, preferred first. None for
      #   a record that clients may change, because they send its entity tag with the change
      def codings
        return NO_CODINGS if key.nil? || changeable?

        @keeper.codings(self)
      end

      # @return [String, nil] the chosen content coding
      attr_reader :coding

      # Chooses a compressed form, to which {#etag}, {#found?} and {#encoded} then refer.
      # @param coding [String] one of {#codings}
      def encode(coding)
        @coding = coding
        @etag = nil
      end

      # @return [String] the bytes in the chosen coding
      def encoded
        return body unless @coding

        form.blanks ? @keeper.filled(form, viewer_values) : form.body
      end

      # @return [Written] the document without the viewer's values, from the store or newly written
      def written
        @written ||= key ? @keeper.fetch(self, key) : write
      end

      # @return [Boolean] whether it was written from rows, and not taken from the store
      def rendered? = @rendered == true

      # @return [Boolean] whether {#body} has been written
      def body?
        !@body.nil?
      end

      # @return [Boolean] whether the requested record exists; true for a collection
      def found?
        kept_form.found
      end

      # Derives the entity tag of a cached document from its key, and from its per-viewer values or their
      # versions; else from the bytes. Also from the bytes for a record that clients may change, because
      # changes of other rows of the table must not change its tag.
      # @return [String] an entity tag
      def etag
        @etag ||= @coding ? "#{plain_etag[..-2]}-#{@coding}\"" : plain_etag
      end

      # Adds links that depend on the rows.
      # @param base [String] the links' base URL, which becomes part of the cache key
      # @yieldparam total [Integer, nil] the number of records; nil if they are not counted
      # @yieldparam full [Boolean] whether the page is full
      # @yieldreturn [Hash]
      def link(base, &block)
        @link_base = base
        @linker = block
      end

      # Adds top-level members.
      # @param jsonapi [String, nil] JSON
      # @param links [Hash{String => String}]
      def frame(jsonapi, links)
        @jsonapi = jsonapi
        @links = { **links, **(@links || {}) } if links.any?
      end

      # @return [Boolean] whether the primary data is a list
      def collection?
        @id.nil?
      end

      # @!group Parts of the cache key

      # @return [Array<String>, nil] the tables from which the document is made; nil if they are unknown
      def tables
        @tables ||= unless custom_code.reads_records?
                      found = certain_tables
                      found if found.is_a?(Array)
                    end
      end

      # @return [Array<Array(String, String, String)>] tables from which only rows
      #   with one value of a column are read
      def parts
        return NO_VALUES unless known_parts

        known_parts.fetch([identity, id]) do
          choosing = adapter.scopes.key(@id ? paged : narrowed)
          tables_read.parts(definition.caching.by, choosing, scopes_sql) do |related|
            scopes.of(related, adapter)&.subquery
          end
        end
      end

      # PostgreSQL only: SQLite has no narrower versions than those of tables, see {Versions::ExactVersions}.
      # @return [BoundedCache, nil] the plan's {#parts} by the result of
      #   {Rows::Scopes#identity} and the id; nil if there are none
      def known_parts
        plan.derive(:parts) { BoundedCache.new(limit: 1000) } if definition.caching.by.any? && adapter.dialect.name == :postgres
      end

      # @return [String, nil] the id of the requested record
      def id = @id&.to_s

      # @return [Array<String>] SQL of the scopes that select rows, with the order of a collection
      def choosing_sql
        [adapter.scopes.sql(collection? ? paged : narrowed), *scopes_sql]
      end

      # @return [Array<String>] SQL of the associations that link to and include rows
      def associations_sql
        tables_read.associations
      end

      # @return [CustomCode] the application's Ruby code that runs while the document is written
      def custom_code
        @custom_code ||= begin
          loaded = adapter.loaded_classes(plan)
          plan.derive(loaded.empty? ? :custom_code : [:custom_code, loaded]) { CustomCode.new(plan, adapter) }
        end
      end

      # @return [String] the shape of the filtered scope and of resource scopes, see {Rows::Scopes#identity}
      def shape
        identity.first
      end

      # @return [Array] the values bound to the shape, order, page, id, settings of the encoding, and
      #   everything that Ruby code reads besides its columns
      def values
        [identity.last, fixed_values, Serialize.escape, custom_code.surroundings(viewer)]
      end

      # @return [Array] those {#values} that path and query determine, unless
      #   the application passes meta or links
      def fixed_values
        around = json("meta and links", [@meta, @links, @jsonapi]) if @meta || @links || @jsonapi
        [request.sort, request.cursor ? request.cursor.key : request.page, @id&.to_s, around, @link_base]
      end

      # @return [Boolean] whether the keys of two requests with the same path and query can differ only in the
      #   application's scope (or the scope of all rows), the viewer's values and {CustomCode#surroundings}
      def keyed_by_request?
        return false if plan.for_viewers? || changeable? || definition.scope || definition.itself
        return false if Rows::PlanScopes.of(plan, adapter).any? || tables_read.changing?

        request.filters.empty? && request.sort.none? { |column, _| column.is_a?(Array) } && adapter.loaded_classes(plan).empty?
      end

      # @!endgroup

      # @return [Boolean] whether the bytes are cached between requests
      def kept?
        !key.nil?
      end

      # @return [String, nil] why the document is currently not cached; nil if it is
      def not_kept
        return Castellan.keeper ? UNCACHED : NOT_KEEPING unless @keeper
        return "it is written anew inside Castellan.verify" if Document.verification

        @keeper.reason(self)
      end

      # @return [Array<String>] see {Keeper#unversioned}
      def unversioned = @keeper.unversioned(plan)

      # @return [Array<String>] why the document can never be cached, with any store and versions
      def unkeepable
        reasons = tables_read.reasons
        found = certain_tables if reasons.empty?
        reasons = ["the tables that a statement reads are not certain: #{found}"] if found.is_a?(String)
        custom_code.obstacles + reasons
      end

      # Writes the document; inside `Castellan.verify` from the models, if they differ from the rows.
      # @return [Written]
      def write
        output = write_rows
        verification = Document.verifier&.current
        output = verification.check(self, output) if verification
        Written.new(output.body, (output.blanks unless output.holes.empty?), @found)
      end

      # @return [Serialize::Output]
      def write_rows
        @rendered = true
        counting = counting_query if request.page && definition.paging.count && @total.nil?
        row_set = span(:select) { rows_of(plan, adapter, selected, counting) }
        @total ||= adapter.scopes.counted(narrowed, Rows::ColumnValues.column(counting.rows, 0).first.to_i) if counting&.rows
        rows = row_set.tables.first.rows
        count = rows.is_a?(Array) ? rows.size : rows.ntuples
        single = !collection?
        @found = !single || count.positive?
        encoder = Serialize.encoder
        @template = Serialize.template(plan)
        ends = request.page || @meta || @links || @linker || @jsonapi ? tail(count) : NO_BYTES
        span(:render) { encoder.encode(row_set, @template, single: single, tail: ends) }
      ensure
        row_set&.release
      end

      # @return [Object] the relation or dataset with filters, order and page applied
      def paged
        @paged ||= @id ? adapter.scopes.by_ids(narrowed, possible_ids, definition.id_column) : window
      end

      # Applies the scope once more, because a filter's block may return a relation
      # that does not derive from its argument.
      # @return [Object] the relation or dataset with filters applied
      def narrowed
        return @scope if request.filters.empty?

        @narrowed ||= begin
          filtered = request.filters.reduce(@scope) { |scope, (name, values)| filter(scope, name, values) }
          scopes.narrow(definition, adapter, filtered)
        end
      end

      # @param count [Integer] the number of records that were read
      # @return [String] JSON of the members after `data` and `included`
      def tail(count)
        meta = { **page_meta, **(@meta || {}) }
        links = { **(@links || {}), **page_links(count) }
        text = +""
        text << %(,"meta":#{json("meta", meta)}) if @meta || meta.any?
        text << %(,"links":#{json("links", links)}) if @links || links.any?
        text << %(,"jsonapi":#{@jsonapi}) if @jsonapi
        text
      end

      # @return [Integer, nil] the number of records in the whole collection, if the resource counts them
      def total
        @total ||= adapter.scopes.count(narrowed, count_sql) if request.page && definition.paging.count && collection?
      end

      # @return [String] the Content-Type of the document, with applied profiles (JSON:API 1.1, "Profiles")
      def media_type
        return MEDIA_TYPES.fetch(plan.format) unless @cursor_page && plan.format == :json_api

        %(#{MEDIA_TYPES[:json_api]};profile="#{Plan::Cursor::PROFILE}")
      end

      # @return [String] the SQL that selects the primary rows
      def statement
        adapter.scopes.key(paged)
      end

      # @return [String] describes what will be read
      def explain
        Explanation.new(self, adapter).to_s
      end

      # @return [Array<Object>] the records of the primary data, for {Verify}
      def records
        adapter.scopes.load(paged, whole: true)
      end

      # @!group Used by {Stream} for each piece

      # @return [Plan::RowSet]
      def rows_of(part, adapter, scope, beside = nil)
        found = if @together.nil? then adapter.fetch(part, scope, viewer: viewer, scopes: scopes, beside: beside)
                else
                  Rows::Together.render(@together) { adapter.fetch(part, scope, viewer: viewer, scopes: scopes, beside: beside) }
                end
        @cursor_page && definition.paging.cursors ? @cursor_page.with_cursors(found) : found
      end

      # @!endgroup

      private

      def tables_read = Rows::TablesRead.for(plan, adapter)

      def certain_tables = tables_read.of_shape(shape) { adapter.scopes.tables(plan, narrowed, scopes_sql) }

      # @return [Rows::Reading::Query, nil] counts the records in the round trip of the page
      def counting_query
        sql = count_sql if collection? && adapter.dialect.overlaps?
        Rows::Reading::Query.new(adapter, sql, nil, true) if sql
      end

      # All pages of a scope share it.
      def count_sql
        return adapter.scopes.count_sql(narrowed) unless bound

        known = plan.derive(:count_statements) { BoundedCache.new }
        sql = known[bound] || (adapter.scopes.count_sql(narrowed)&.freeze || NO_BYTES).then do |found|
          Rows::Scopes::Identity.small?(bound) ? known.fetch(bound) { found } : found
        end
        sql unless sql.empty?
      end

      # @return [Rows::Reader::Page, Object] the rows to read; the SQL of an
      #   earlier page with this key is reused
      def selected
        return paged if @paged || @id || @cursor_page || bound.nil? || request.sort.any? { |column, _| column.is_a?(Array) }

        Rows::Reader::Page.new([*bound, request.sort, request.page], -> { paged })
      end

      def bound
        return @bound if defined?(@bound)

        @bound = adapter.scopes.bound(narrowed)
      end

      # Without a recording, this calls no code in another file.
      def span(kind, &block)
        @recording ? Recording.span(kind, definition.name, &block) : yield
      end

      # Reads the cache key once and before anything else; nil if nothing is cached.
      def key
        return @key if defined?(@key)

        @recording = Recording.current
        kept = @keeper && definition.caching && Document.verifier&.current.nil?
        @key = (span(:version) { @keeper.key(self) } if kept)
        @recording&.notify(:keyed, self, @key)
        @key
      end

      # Returns whether clients may change the record; they then send its entity tag.
      def changeable?
        @id && definition.written_as.any? { |one| one.writing.changes? }
      end

      def plain_etag
        return Rendering.digest(body) if key.nil? || changeable?

        return @keeper.etag(served_key, tag) if plan.holes.empty?

        personal = viewer_versions || Serialize::Blanks.joined(kept_form.blanks ? viewer_values : NO_VALUES)
        @keeper.etag(served_key, tag ? [tag, personal] : personal)
      end

      # @return [String, nil] the digest of a document that expires
      def tag = (written.tag if definition.caching.expires_in)

      # Stale bytes keep the entity tag of the version from which they were made.
      def served_key
        definition.caching.stale? ? written.key || key : key
      end

      def form
        @form ||= @keeper.form(self, key, @coding)
      end

      def kept_form = @coding ? form : written

      # Does not contain order, page and id, so that a cache hit builds no statement with them.
      def identity
        @identity ||= begin
          own = adapter.scopes.identity(narrowed, plan)
          further = Rows::PlanScopes.of(plan, adapter).identities(scopes) + order_sql.map { |sql| [sql, NO_VALUES] }
          further.empty? ? own : [[own, *further].map(&:first).join("\n"), [own, *further].map(&:last)]
        end
      end

      def viewer_values
        @viewer_values ||= begin
          blanks = kept_form.blanks
          read = -> { blanks.values(ViewerBlocks.for(plan, adapter), viewer) }
          known = @keeper.known_values(served_key, viewer_versions, tag) if key && viewer_versions
          known ? known.values(blanks, &read) : read.call
        end
      end

      def viewer_versions
        return @viewer_versions if defined?(@viewer_versions)

        @viewer_versions = @keeper.viewer_versions(plan, viewer, definition.caching.kind, adapter)
      end

      def scopes_sql
        Rows::PlanScopes.of(plan, adapter).sql(scopes) + order_sql
      end

      def object(member, value)
        return value if value.is_a?(Hash)

        raise ConfigurationError, "#{member}: of a document must be a Hash, got #{value.inspect[0, 60]}"
      end

      # The adapter writes times, decimals and records in the same way as attributes.
      def json(member, value)
        plain = Rows::JSONValue.plain_text(value) or return adapter.json(value)
        (@template || Serialize.template(plan)).text.append_json(+"", plain)
      rescue ::JSON::GeneratorError, ::JSON::NestingError, ::EncodingError => error
        raise EncodingError, "#{definition.type}, #{member} of the document: #{error.message.scrub[0, 120]}"
      end

      def filter(scope, name, values)
        by = definition.filters.fetch(name)
        by.is_a?(Proc) ? filter_by_block(scope, name, values, by) : adapter.scopes.matching(scope, @comparisons.fetch(name))
      end

      # @return [Hash{String => String}] conditions of filters on columns; built
      #   first, because a value may be invalid
      def comparisons
        request.filters.filter_map { |name, values|
          by = definition.filters.fetch(name)
          next if by.is_a?(Proc)

          column = Rows::ComparedColumn.new(definition, adapter, by, scopes)
          [name, values.map { |operator, texts| column.condition(operator, texts, request.filter_parameter(name)) }.join(" AND ")]
        }.to_h
      end

      def filter_by_block(scope, name, values, block)
        takes_viewer = block.parameters.count { |kind, _| %i[req opt].include?(kind) } > 2
        values = values.map(&:dup) # requests are shared
        filtered = takes_viewer ? block.call(scope, values, viewer) : block.call(scope, values)
        filtered = adapter.scopes.from(filtered) if Rows.scope?(filtered)
        return filtered if adapter.scopes.own?(filtered)

        raise ConfigurationError, "filter(:#{name}) of #{definition.name} must return the narrowed scope, got #{filtered.class}"
      rescue BadRequest => error
        raise error.in_parameter(request.filter_parameter(name))
      end

      def cursor_page
        CursorPage.new(self, request.cursor) if request.cursor && collection?
      end

      def page_meta
        total = self.total
        return total ? { definition.paging.count => total } : {} unless @cursor_page

        page = @cursor_page.meta(total)
        page.empty? ? page : { "page" => page }
      end

      def page_links(count)
        return {} unless @linker
        return @cursor_page.links(@link_base) if @cursor_page

        @linker.call(total, request.page && count >= request.page.last)
      end

      def window
        return @cursor_page.scope if @cursor_page

        number, size = request.page
        return narrowed if size.nil? && request.sort.empty?

        ordered = adapter.scopes.order(narrowed, order, key: plan.root.columns.first.name)
        size ? adapter.scopes.page(ordered, limit: size, offset: (number - 1) * size) : ordered
      end

      # Columns of the table are named, others written as SQL.
      def order
        request.sort.map { |column, direction| [column.is_a?(Array) ? compared(column) : column, direction] }
      end

      def compared(path)
        by = definition.sorts.each_value.find { |sort| sort.key == path }
        Rows::ComparedColumn.new(definition, adapter, by, scopes)
      end

      # The tables of a path belong to the document's tables.
      def order_sql
        request.sort.filter_map { |column, _| "SELECT #{compared(column).sql} FROM #{adapter.types.table}" if column.is_a?(Array) }
      end

      # A string that is no valid id matches nothing; PostgreSQL would refuse to compare it with a uuid.
      def possible_ids
        id = Rows::Ids.text(@id) or return []
        column = definition.id_column
        column.is_a?(Symbol) && adapter.types.database_type(column) == "uuid" && !Rows::Ids::UUID.match?(id.to_s) ? [] : [id]
      end
    end
  end
end
