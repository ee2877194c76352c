# frozen_string_literal: true

module Castellan
  module Versions
    # Keeps exact versions in memory until PostgreSQL notifies of a write, so that hits need no query.
    #
    #   castellan_versions :posts, :users, notify: true       # in a migration
    #   Castellan.keep(store: store, versions: NotifiedVersions.new(ActiveRecord::Base))
    #   class PostResource … cache :notified                  # `cache :exact` still queries each time
    #
    # Tokens are those of {ExactVersions}, so processes of both kinds share their documents. Until a
    # notification arrives, usually milliseconds after the commit, readers may get the document from before
    # the write, even the client that wrote. After `recheck` seconds the version is read again, because a
    # notification may be lost with its connection, and ALTER TABLE sends none.
    #
    # Every version is read from the database in a transaction, without a listening connection (a broken one,
    # a pooler in transaction mode), in roles and shards of ActiveRecord other than the default, after
    # `establish_connection` with another database, with `servers:` of Sequel, and on SQLite; for tables without
    # `notify: true` as well, or once per `poll:` seconds. Use `poll:` for tables that are written all the time,
    # because PostgreSQL serializes the commits of transactions that notify.
    #
    # Change the search path only with ActiveRecord's `connection.schema_search_path=`; if the application
    # runs `SET search_path` as SQL, use `cache :exact`.
    class NotifiedVersions
      LIMIT = 5000 # lists of tables; clients choose includes, and each viewer's rows have their own version

      # A token, the generation before it was read, the time of reading and its lifetime in nanoseconds. `total` is one of
      # the listener at which the generation was still the same; nil: none is known.
      Known = Struct.new(:generation, :token, :read_ns, :lasts_ns, :total)

      # `checked`: the time when the triggers were checked, and the lifetime of tokens, in nanoseconds.
      class Slot
        attr_reader :tables, :names
        attr_accessor :known, :checked

        def initialize(dependencies)
          @tables = dependencies.map(&:table).uniq
          @names = @tables.map { |table| table[/[^.]+\z/] } # without the schema, as in notifications
        end
      end
      private_constant :LIMIT, :Known, :Slot

      # @return [ExactVersions]
      attr_reader :exact

      # @param source [Class, Object] ActiveRecord::Base or a subclass, or a Sequel::Database
      # @param recheck [Numeric] seconds until a version is read again without a notification
      # @param poll [Numeric, nil] seconds until a version of tables without `notify: true` is read again,
      #   such as 0.01; nil: read it each time
      # @param prepared [Boolean, nil] see {ExactVersions}
      # @param log [#call, nil] called once when the listening connection is lost or cannot be opened; default standard error
      # @param connect [Hash, nil] arguments of PG.connect, if the application connects through a pooler
      def initialize(source, recheck: 1, poll: nil, prepared: nil, log: nil, connect: nil)
        Store.check_ttl(recheck)
        Store.check_ttl(poll)
        @connections = RawConnections.for(source)
        @exact = ExactVersions.new(source, prepared: prepared, log: log)
        @recheck_ns = (recheck * 1_000_000_000).to_i
        @poll_ns = [(poll * 1_000_000_000).to_i, @recheck_ns].min if poll
        @listener = NotificationListener.new(log: log) { @connections.listened(connect) }
        @slots = BoundedCache.new(limit: LIMIT)
      end

      # @param dependencies [Array<Dependency>]
      # @yieldparam error [StandardError] see {ExactVersions#current}
      # @return [String, nil] see {ExactVersions#current}
      def current(dependencies, &failed)
        return if Castellan.off?

        place = @connections.place if postgres? && !dependencies.empty?
        return @exact.current(dependencies, &failed) unless place

        slot = @slots.fetch(place.empty? ? dependencies : [place, dependencies]) { Slot.new(dependencies) }
        now_ns = Clock.monotonic_ns
        generation = @listener.generation(slot.names, now_ns) or return @exact.current(dependencies, &failed)
        known = slot.known
        return known.token if known && known.generation == generation && now_ns - known.read_ns < known.lasts_ns

        @exact.current(dependencies, &failed).tap { |found| note(slot, generation, found, now_ns) }
      end

      # Finds what {#unchanged?} needs to know of a version.
      # @param dependencies [Array<Dependency>]
      # @param token [String] the version that {#current} has just returned for them
      # @return [Array(Slot, Array), nil] nil if it was not kept in memory
      def reading(dependencies, token)
        slot = @slots[dependencies] or return
        known = slot.known
        [slot, known].freeze if known && known.token.equal?(token)
      end

      # Costs less than {#current}, in a thread with the default role, shard and connection handler.
      # @param reading [Array] see {#reading}
      # @return [Boolean] whether {#current} would return the same version from memory
      def unchanged?(reading)
        RawConnections::HOME.equal?(@connections.place_by_default) && noticed_none?(reading)
      end

      # Costs even less, where {#unchanged?} has just been true of another reading.
      # @param reading [Array] see {#reading}
      # @return [Boolean] see {#unchanged?}
      def noticed_none?(reading)
        slot, known = reading
        return false unless slot.known.equal?(known)

        now_ns = Clock.monotonic_ns
        return false unless now_ns - known.read_ns < known.lasts_ns && (total = @listener.total(now_ns))
        return true if known.total == total
        return false unless @listener.generation(slot.names, now_ns) == known.generation

        known.total = total
        true
      end

      # @param model [Object] a model or dataset
      # @return [Boolean] whether its tables are in the database whose versions are read
      def of?(model) = @exact.of?(model)

      # Installs the triggers, with notifications; see {ExactVersions#install}.
      # @param tables [Array<String>]
      def install(tables) = @exact.install(tables, notify: true)

      # Removes the triggers and counters.
      def uninstall(tables) = @exact.uninstall(tables)

      # @return [Boolean] whether every table has its triggers
      def installed?(tables) = @exact.installed?(tables)

      # @return [Boolean] whether this process is listening; it starts at the first call of {#current}
      def listening? = !@listener.generation([], Clock.monotonic_ns).nil?

      # Ends the listening connection.
      def close = @listener.close

      private

      def postgres? = (@dialect ||= @connections.dialect) == :postgres

      # Writes new objects, so that other threads never read parts of two.
      def note(slot, generation, token, now_ns)
        checked_ns, lasts_ns = slot.checked
        unless checked_ns && now_ns - checked_ns < @recheck_ns
          lasts_ns = token && (@exact.notifies?(slot.tables) ? @recheck_ns : @poll_ns)
          slot.checked = lasts_ns && [now_ns, lasts_ns].freeze
        end
        slot.known = (Known.new(generation, token, now_ns, lasts_ns) if token && lasts_ns)
      end
    end
  end
end
