# frozen_string_literal: true

module Castellan
  class Keeper
    # Caches the output of the application's own serializers until one of the tables they read changes.
    #
    #   key = ["posts", params[:page].to_s.to_i]
    #   Castellan.cache.fetch(key, depends_on: [Post, "comments"]) { PostSerializer.new(posts).to_json }
    #   fresh_when etag: Castellan.cache.etag(key, depends_on: [Post, "comments"])
    #
    # Uses the versions, store and revision of `Castellan.keep`. Castellan cannot see what the block reads:
    # name every table in `depends_on:`, and everything else (viewer, locale, parameters) in the key or
    # `vary:`.
    class ApplicationCache
      include ShortInspect

      BINARY = "b"
      TEXT = "t"
      HTML = "h" # text that is html_safe, as of `capture` or `render` in a template
      PARTS = [String, Symbol, Integer, true, false, nil].freeze
      FOREVER = Cache::Freshness.new
      CLASS_OF = Kernel.instance_method(:class)
      private_constant :BINARY, :TEXT, :HTML, :PARTS, :FOREVER, :CLASS_OF

      # @param store [Object] see {Store}
      # @param versions [#current, nil] see {Versions}; nil: nothing is cached
      # @param revision [#to_s, nil]
      # @param log [#call, nil] receives a line for a table without a version; default: standard error
      def initialize(store:, versions: nil, revision: nil, log: nil)
        @versions = versions
        @exact = versions.is_a?(Versions::NotifiedVersions) ? versions.exact : versions
        @revision = revision
        @layer = Cache::DocumentLayer.new(store: store, name: :fetch)
        @outage = Outage.new(@layer)
        @tables = BoundedCache.new
        @freshness = BoundedCache.new
        @log = log || ->(line) { warn(line) }
        @hinted = BoundedCache.new(limit: 1000)
      end

      # @param key [String, Symbol, Integer, Array] a name, then parameters
      # @param depends_on [Class, String, Array] models or names of all tables that the block reads
      # @param vary [Object] what else the bytes depend on, of the same types as a key
      # @param notified [Boolean] whether the version may come from memory, see {Versions::NotifiedVersions}
      # @param expires_in [Numeric, nil] seconds; nil: until a table changes
      # @param stale_while_revalidate [Numeric, nil] seconds, see {Cache::Freshness}
      # @param stale_if_error [Numeric, nil] seconds
      # @yieldreturn [String, nil] UTF-8 or binary; nil is not cached
      # @return [String, nil] the bytes, unfrozen if they are cached
      # @raise [ConfigurationError] for an invalid key, table or value, without a block, and
      #   without depends_on: and expires_in:
      def fetch(key, depends_on: nil, vary: nil, notified: false, expires_in: nil, stale_while_revalidate: nil, stale_if_error: nil, &block)
        raise ConfigurationError, "Castellan.cache.fetch needs a block that returns the bytes" unless block

        times = [expires_in, stale_while_revalidate, stale_if_error]
        freshness = @freshness.fetch(times) { freshness(*times) }
        tracing = Castellan.tracing or return kept(key, depends_on, vary, notified, freshness, &block)
        tracing.fetch { kept(key, depends_on, vary, notified, freshness, &block) }
      end

      # Computes an entity tag without calling the serializer.
      # @param (see #fetch)
      # @return [String, nil] quoted; nil if the version is unknown
      def etag(key, depends_on:, vary: nil, notified: false)
        _, digest = keys(key, depends_on, vary, notified, FOREVER)
        ActiveRecordThread.clear_query_caches
        Cache::Key.etag(digest, nil) if digest
      end

      # @param tables [Array<String>]
      # @return [String, nil] their version, for `castellan cache explain`
      def version(tables)
        @versions && @exact.current(tables.map { |table| Versions::Dependency.new(table) })
      end

      # @param tables [Array<String>]
      # @return [Array<String>] those without a version; empty unless versions are exact or notified
      def missing(tables) = @exact.is_a?(Versions::ExactVersions) ? @exact.missing(tables) : []

      # @param tables [Array<String>]
      # @return [String, nil] why the database refuses to return their version
      def failure(tables) = @exact.is_a?(Versions::ExactVersions) ? @exact.failure(tables) : nil

      private

      def kept(key, depends_on, vary, notified, freshness)
        name, digest = keys(key, depends_on, vary, notified, freshness)
        return checked(key, yield) unless digest

        kept = @layer.fetch(digest, freshness: freshness, latest: (name if freshness.stale?)) do
          ActiveRecordThread.clear_query_caches
          sealed(key, yield)
        end
        kept && opened(kept)
      end

      # @return [Array(String, String), nil] the keys without and with the version; nil if nothing is cached
      def keys(key, depends_on, vary, notified, freshness)
        checked_part("the key", key)
        checked_part("vary:", vary) unless vary.nil?
        raise ConfigurationError, "Castellan.cache.fetch needs a key, such as [\"posts\", params[:page].to_s.to_i], got #{key.inspect}" \
          if key.nil? || key == "" || key == []

        dependencies = dependencies(depends_on)
        # Also without a store, as in development: the first call that raises would otherwise be in production.
        endless!(freshness) if dependencies.empty? && !freshness.expires_in
        return if Castellan.off?

        found = @versions && versioned(key, vary, dependencies, notified, freshness)
        hint(key, dependencies) if @versions && found.nil?
        Recording.current&.notify(:fetched, key, dependencies.map(&:table), found&.last)
        found
      end

      def versioned(key, vary, dependencies, notified, freshness)
        versions = notified ? @versions : @exact
        address = @exact.address if @exact.respond_to?(:address) # copies of a database may have equal versions
        parts = [VERSION, "fetch", @revision.to_s, key, vary, dependencies.map(&:table), address]
        name = Cache::Key.for(parts)
        digest = @outage.key(freshness, -> { name }) do |failed|
          version = dependencies.empty? ? "" : versions.current(dependencies, &failed)
          version && Cache::Key.for([*parts, version])
        end
        [name, digest] if digest
      end

      # @raise [ConfigurationError] an entity tag cannot expire
      def endless!(freshness)
        raise ConfigurationError, "Castellan.cache.etag needs tables: write depends_on: [Post, \"comments\"]" if freshness.equal?(FOREVER)

        raise ConfigurationError, "Castellan.cache.fetch would never compute these bytes again: write " \
                                  "depends_on: [Post, \"comments\"] or expires_in: 60"
      end

      # Logs each table once, with the first part of the key, because the others may be personal.
      def hint(key, dependencies)
        @hinted.fetch(dependencies) do
          missing = missing(dependencies.map(&:table)).select { |table| first_hint?(table) }
          missing.any? ? hint_at(key, missing) || true : :none
        end
      end

      def first_hint?(table)
        first = false
        @hinted.fetch(table) { first = true }
        first
      end

      def hint_at(key, tables)
        @log.call("castellan: Castellan.cache.fetch(#{[*key].first.inspect[0, 60]}) is not kept, because #{Versions.lacking(tables)}")
      end

      def dependencies(given)
        list = given.is_a?(Array) ? given : [given].compact
        list.flat_map { |one| one.is_a?(Class) ? of_model(one) : of_table(one) }.uniq.sort_by(&:table)
      end

      def of_table(name)
        known = @tables[name] and return known
        refuse(name) unless name.is_a?(String) || name.is_a?(Symbol)

        @tables.fetch(name) { Versions::Dependency.new(name) }
      end

      def of_model(model)
        table = model.table_name if model.respond_to?(:connection_pool) || model.respond_to?(:dataset)
        refuse(model) unless table
        if @versions.respond_to?(:of?) && !@versions.of?(model)
          raise ConfigurationError, "depends_on: #{model.name} is in another database than the one whose versions are read: name no " \
                                    "table of it and set expires_in:, or pass versions: of that database to Castellan.keep"
        end

        Versions::Dependency.tables_of(model).map { |one| of_table(one) }
      end

      def refuse(given)
        got = "a relation or dataset; write the model, such as Post" if given.respond_to?(:klass) || given.respond_to?(:sql)
        got ||= given.is_a?(Module) ? given : "a value of #{given.class}"
        raise ConfigurationError, "depends_on: takes models and names of tables, such as [Post, \"comments\"], got #{got}"
      end

      def checked_part(what, part)
        return part.each { |inner| checked_part(what, inner) } if part.is_a?(Array)
        return if PARTS.any? { |kind| kind === part } # rubocop:disable Style/CaseEquality -- classes and values

        # ActionController::Parameters also responds to keys.
        write = part.respond_to?(:to_i) ? ": write to_s or to_i" : ": write its id, or to_s"
        write = ": write its values; a parameter (?page[a]=1) as params[:page].to_s.to_i" if part.respond_to?(:keys)
        raise ConfigurationError, "#{what} of Castellan.cache.fetch is made of strings, symbols, integers, booleans, " \
                                  "nil and arrays of them, got #{part.class}#{write}"
      end

      # Asks the value nothing, because a Jbuilder answers every call, also `is_a?`.
      def checked(key, value)
        got = case value
              when nil then return value
              when String
                return value if [Encoding::UTF_8, Encoding::US_ASCII, Encoding::BINARY].include?(value.encoding)

                "a String in #{value.encoding}: write encode(\"UTF-8\")"
              when Object then "#{value.class}: write to_json"
              else "#{CLASS_OF.bind_call(value)}: write target!, as of a Jbuilder" # a BasicObject
              end
        raise ConfigurationError, "the block of Castellan.cache.fetch(#{key.inspect[0, 60]}) must return a String of UTF-8 or of bytes, " \
                                  "got #{got}"
      end

      def sealed(key, value)
        value && (kind(checked(key, value)).b << value.b)
      end

      def kind(value)
        return BINARY if value.encoding == Encoding::BINARY

        value.respond_to?(:html_safe?) && value.html_safe? ? HTML : TEXT
      end

      def opened(kept)
        bytes = kept.byteslice(1, kept.bytesize)
        return bytes if kept.start_with?(BINARY)

        bytes.force_encoding(Encoding::UTF_8)
        kept.start_with?(HTML) ? bytes.html_safe : bytes
      end

      def freshness(expires_in, stale_while_revalidate, stale_if_error)
        Cache::Freshness.new(expires_in: expires_in, stale_while_revalidate: stale_while_revalidate, stale_if_error: stale_if_error)
      rescue ArgumentError => error
        raise ConfigurationError, "Castellan.cache.fetch: #{error.message}"
      end
    end
  end
end
