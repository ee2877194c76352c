# frozen_string_literal: true

require "securerandom"

module Castellan
  module Cache
    # Caches bytes by key, and computes them once for simultaneous requests.
    #
    #   documents = DocumentLayer.new(store: store)
    #   documents.fetch(key, freshness: Freshness.new(expires_in: 43_200)) { render } # => bytes
    #
    # Within a process, other threads wait for the one that computes. Between processes, a store that supports
    # leases lets one process compute while the others poll for its bytes. When the lease ends without them, one
    # of the others takes a new lease; when that ends as well, all compute. One reader recomputes bytes shortly
    # before they expire (XFetch: Vattani, Chierichetti, Lowenstein, "Optimal Probabilistic Cache Stampede
    # Prevention", 2015). A failing store is a miss. An error is raised only in the thread that computed. Do not
    # call {#fetch} inside a database transaction that other requests wait for.
    class DocumentLayer
      PAUSE_SECONDS = 0.02
      FOREVER = Freshness.new
      private_constant :PAUSE_SECONDS, :FOREVER

      # @param store [Object] see {Store.for}; several layers may share a {Store::FailSafe}
      # @param name [Symbol] name of the layer in {Events}
      # @param lease_ttl [Numeric] seconds until waiting threads compute themselves; processes wait for two leases
      # @param log [#call, nil] called with a line when the store fails
      # @param random [#call] returns a number from 0 to below 1
      def initialize(store:, name: :document, lease_ttl: 10, log: nil, random: -> { Kernel.rand })
        Store.check_ttl(lease_ttl)
        @store = Store::FailSafe.for(store, log: log)
        @name = name
        @lease_ttl = lease_ttl
        @leases = @store.shares_leases?
        @flights = SingleFlight.new(timeout: lease_ttl)
        @random = random
        freeze
      end

      # @param key [String]
      # @param freshness [Freshness] how long the bytes may be served
      # @param latest [String, nil] the key without the version. If `freshness` allows it, bytes of the
      #   previous version are served while another thread or process computes the new ones
      # @yieldreturn [String, nil] the bytes; nil is not stored
      # @return [String, nil] the bytes
      def fetch(key, freshness: FOREVER, latest: nil, &compute)
        return yield if Castellan.off?

        find(key, freshness: freshness, latest: latest, &compute)&.bytes
      end

      # @param (see #fetch)
      # @yieldreturn [String, nil] see {#fetch}
      # @return [Entry, nil] the key of the entry differs from `key` for bytes of the previous version
      def find(key, freshness: FOREVER, latest: nil, &compute)
        started_ns = Clock.monotonic_ns if Events.wanted?
        entry = entry(key)
        entry = shared(key) || entry if entry && !fresh?(entry, freshness)
        return hit(entry, started_ns) if entry && freshness.expires_in.nil?

        left_ms = (freshness.expires_in * 1000) - entry.age_ms if entry
        return refreshed(entry, freshness, latest, left_ms, started_ns, &compute) if left_ms&.positive?

        publish(:miss, started_ns)
        stale = stale(entry, left_ms, freshness, latest)
        return served_stale(stale, started_ns) if stale&.usable?(freshness.stale_while_revalidate) && @flights.running?(key)

        filled(key, freshness, latest, stale, started_ns, &compute)
      end

      # @param key [String]
      # @return [Entry, nil] the stored entry, even if it has expired
      def entry(key)
        Entry.load(key, @store.read_multi([key])[key]) unless Castellan.off?
      end

      # @param latest [String] see {#find}
      # @param seconds [Float] how long the current version has been unknown
      # @param freshness [Freshness] with `stale_if_error`
      # @return [String, nil] the key of the last version, if its bytes may replace an error
      def last_key(latest, seconds, freshness)
        started_ns = Clock.monotonic_ns if Events.wanted?
        key = entry(latest)&.bytes or return
        entry = entry(key) or return
        noticed = @store.read_multi(["#{key}:replaced"]).each_value.first # a change, before the outage
        seconds = [seconds, seconds_since(noticed)].max if noticed
        return unless Stale.new(entry, seconds).usable?(freshness.stale_if_error)

        publish(:error, started_ns, entry)
        key
      end

      # Reads an entry, even an expired one, without the steps and events of {#find}.
      # @param key [String]
      # @yieldparam entry [Entry]
      # @return [Object, nil] the value of the block, which a store in this process caches
      def decoded(key)
        @store.decoded(key) { |kept| (entry = Entry.load(key, kept)) && yield(entry) }
      end

      private

      # @return [Entry, nil] the entry that all processes see; that of this process may be one that another one replaced
      def shared(key) = Entry.load(key, @store.read_shared([key])[key])

      # An expired or replaced entry, and the seconds since then.
      Stale = Struct.new(:entry, :seconds) do
        def usable?(limit) = !limit.nil? && seconds <= limit
      end
      private_constant :Stale

      def hit(entry, started_ns)
        publish(:hit, started_ns, entry)
        entry
      end

      # The probability falls exponentially with the time left, measured in costs of the computation: usually
      # one reader recomputes in time, rarely two.
      def refreshed(entry, freshness, latest, left_ms, started_ns, &compute)
        early = -Math.log(@random.call) * entry.cost_ms >= left_ms
        return hit(entry, started_ns) if !early || @flights.running?(entry.key)

        publish(:refresh, started_ns, entry)
        @flights.run(entry.key) do
          leased(entry.key, -> { entry }) { computed(entry.key, freshness, latest, than: entry, &compute) }
        end || entry
      rescue StandardError
        entry # it has not expired yet; the next reader tries again
      end

      # One thread computes; the others wait for it, or get a stale entry if it fails.
      def filled(key, freshness, latest, stale, started_ns, &compute)
        return computed(key, freshness, latest, &compute) if @flights.mine?(key) # the block fetches its own key

        mine = false
        found = @flights.run(key) do
          now = entry(key)
          next now if now && fresh?(now, freshness)

          mine = true
          leased(key, -> { elsewhere(key, freshness, stale) }) { computed(key, freshness, latest, &compute) }
        end
        publish(:wait, started_ns, found) unless mine
        found
      rescue StandardError
        raise unless stale&.usable?(freshness.stale_if_error)

        publish(:error, (Clock.monotonic_ns if started_ns), stale.entry)
        stale.entry
      end

      def fresh?(entry, freshness)
        freshness.expires_in.nil? || entry.age_ms < freshness.expires_in * 1000
      end

      # @param otherwise [#call] returns the entry of the process that holds the lease; nil: compute
      # @yieldreturn [Entry, nil]
      def leased(key, otherwise)
        return yield unless @leases

        lease = "#{key}:lease"
        token = SecureRandom.hex(8)
        taken = nil
        2.times do # when the lease of a killed process ends, one of those that waited gets a new one
          taken = :unknown # an interrupt may arrive when the store has the lease
          taken = @store.acquire(lease, token, ttl: @lease_ttl)
          break unless taken == false

          found = otherwise.call and return found
        end
        yield
      ensure
        @store.compare_and_delete(lease, token) if taken
      end

      # @param than [Entry, nil] an entry to replace before it expires
      def computed(key, freshness, latest, than: nil)
        started_ns = Clock.monotonic_ns
        other = shared(key) if @leases # another process may have written it before the lease was taken
        return waited(other, started_ns) if other && fresh?(other, freshness) && other.made_ms != than&.made_ms

        started_ns = Clock.monotonic_ns
        started_ms = Clock.wall_ms
        bytes = yield or return
        made = Entry.new(key, bytes, made_ms: Clock.wall_ms, cost_ms: (Clock.monotonic_ns - started_ns) / 1_000_000)
        (newer(key, started_ms) if freshness.expires_in) || kept(made, freshness, (latest unless latest && newer(latest, started_ms)))
      end

      # @return [Entry, nil] bytes whose computation began later, and so read newer rows
      def newer(key, started_ms)
        other = shared(key)
        other if other && other.made_ms - other.cost_ms > started_ms
      end

      def kept(made, freshness, latest)
        started_ns = Clock.monotonic_ns if Events.wanted?
        written = @store.write_multi({ made.key => made.dump }, ttl: freshness.ttl)
        point(latest, made, freshness) if latest && freshness.stale?
        publish(written.empty? ? :pass : :fill, started_ns, made)
        written.empty? ? made.unstored : made
      end

      def point(latest, made, freshness)
        pointer = Entry.new(latest, made.key, made_ms: made.made_ms, cost_ms: made.cost_ms)
        @store.write_multi({ latest => pointer.dump }, ttl: freshness.ttl)
      end

      # Polls until another process has written the bytes or its lease has ended.
      # @return [Entry, nil]
      def elsewhere(key, freshness, stale)
        return served_stale(stale, (Clock.monotonic_ns if Events.wanted?)) if stale&.usable?(freshness.stale_while_revalidate)

        lease = "#{key}:lease"
        started_ns = Clock.monotonic_ns
        while Clock.monotonic_ns < started_ns + (@lease_ttl * 1_000_000_000)
          sleep PAUSE_SECONDS
          found = @store.read_shared([key, lease])
          entry = Entry.load(key, found[key])
          made = entry && fresh?(entry, freshness)
          next if found.key?(lease) && !made
          return unless made

          return waited(entry, started_ns)
        end
      end

      # Publishes that another thread or process has computed the bytes.
      def waited(entry, started_ns)
        publish(:wait, started_ns, entry)
        entry
      end

      # @return [Stale, nil] the expired entry under this key, or that of the previous version
      def stale(entry, left_ms, freshness, latest)
        return unless freshness.stale?
        return Stale.new(entry, -left_ms / 1000.0) if entry

        before = entry(latest)&.bytes if latest
        entry = entry(before) if before
        return unless entry && (freshness.expires_in.nil? || entry.age_ms <= freshness.ttl * 1000)

        Stale.new(entry, seconds_since_replaced(before, freshness))
      end

      # A version counts as replaced when a reader first notices it. That time is stored as long as the bytes.
      def seconds_since_replaced(key, freshness)
        mark = "#{key}:replaced"
        @store.write_multi({ mark => Clock.wall_ms.to_s }, ttl: freshness.ttl, if_absent: true)
        seconds_since(@store.read_multi([mark])[mark])
      end

      def seconds_since(at_ms)
        at_ms.is_a?(String) ? [Clock.wall_ms - at_ms.to_i, 0].max / 1000.0 : Float::INFINITY
      end

      def served_stale(stale, started_ns)
        publish(:stale, started_ns, stale.entry)
        stale.entry
      end

      def publish(outcome, started_ns, entry = nil)
        Events.publish(@name, outcome, started_ns, bytes: entry&.bytes&.bytesize, age: entry && (entry.age_ms / 1000.0)) if started_ns
      end
    end
  end
end
