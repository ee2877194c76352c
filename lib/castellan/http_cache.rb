# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "option_check"
require_relative "short_inspect"
require_relative "bounded_cache"
require_relative "lazy_body"
require_relative "store"
require_relative "cache"
require_relative "http"

module Castellan
  # Stores and serves the responses of any Rack 3 application: a shared HTTP cache (RFC 9111).
  #
  #   use Castellan::HTTPCache                                    # config.ru, outside of sessions and cookies
  #   use Castellan::HTTPCache, store: Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]), only: ["/api"]
  #   Castellan::HTTPCache.purge("https://example.com/posts/1")   # after a change
  #   Castellan::HTTPCache.purge_tags("post-1")                   # responses with `Surrogate-Key: post-1`
  #
  # Stores responses as their Cache-Control, CDN-Cache-Control or Expires allow, validates stale ones, and
  # deletes those that a successful POST, PUT, PATCH or DELETE changes. Never stores personal responses:
  # `private`, `no-store`, responses with Set-Cookie or for which a session was used, and those to requests
  # with Authorization unless they permit it. docs/http.md describes every option and every section of the RFCs.
  class HTTPCache
    include ShortInspect

    SAFE = %w[GET HEAD OPTIONS TRACE PROPFIND REPORT SEARCH QUERY].freeze
    UNSHARED_SECONDS = 10
    UNFILLED_SECONDS = 3_600
    MOST_TURNS = 2 # of waiting for another request
    FAILED = :failed
    NONE = [].freeze
    private_constant :SAFE, :UNSHARED_SECONDS, :UNFILLED_SECONDS, :MOST_TURNS, :FAILED, :NONE
  end
end

require_relative "http_cache/structured_field"
require_relative "http_cache/http_date"
require_relative "http_cache/header_fields"
require_relative "http_cache/directives"
require_relative "http_cache/vary"
require_relative "http_cache/cache_options"
require_relative "http_cache/client_request"
require_relative "http_cache/stored_response"
require_relative "http_cache/validators"
require_relative "http_cache/storage_policy"
require_relative "http_cache/lost_invalidations"
require_relative "http_cache/leases"
require_relative "http_cache/storage"
require_relative "http_cache/surrogate_tags"
require_relative "http_cache/client_conditions"
require_relative "http_cache/ranges"
require_relative "http_cache/parts"
require_relative "http_cache/reuse"
require_relative "http_cache/reply"
require_relative "http_cache/teed_body"
require_relative "http_cache/live_streams"
require_relative "http_cache/origin"
require_relative "http_cache/invalidation"
require_relative "http_cache/refreshes"

module Castellan
  class HTTPCache
    @caches = ObjectSpace::WeakMap.new

    class << self
      # Deletes all variants of the stored response of a URL.
      # @param url [String] absolute, as clients send it
      # @param store [Object, nil] the {Store} of the cache, in a process that has no HTTPCache itself
      # @return [Boolean] false if a store failed. A cache of this process then deletes the responses before
      #   its next read; with `store:`, call it again
      # @raise [ConfigurationError] if the URL is not absolute, or if no store is passed and the process has
      #   no HTTPCache
      def purge(url, store: nil)
        key = ClientRequest.key(url)
        storages(store).map { |storage| storage.invalidate([key]) }.all?
      end

      # Deletes the stored responses with any of these surrogate keys (Surrogate-Key, xkey, Cache-Tag).
      # @param tags [Array<String>]
      # @param store [Object, nil] see {purge}
      # @return [Boolean] see {purge}
      # @raise [ConfigurationError] for an empty tag, and as {purge}
      def purge_tags(*tags, store: nil)
        keys = SurrogateTags.purged(tags)
        storages(store).map { |storage| storage.invalidate_tags(keys) }.all?
      end

      # @return [void]
      # @private
      def register(cache, storage)
        @caches[cache] = storage
      end

      private

      def storages(store)
        return [Storage.new(store)] if store
        raise ConfigurationError, "this process has no Castellan::HTTPCache; pass its store: HTTPCache.purge(url, store: store)" \
          if @caches.size.zero?

        @caches.values
      end
    end

    # @param app [#call] Rack application
    # @param store [Object] see {Store}; default: a {Store::MemoryStore}, which other processes do not share
    # @param only [Array<String>, String, nil] path prefixes to cache; other requests pass untouched
    # @param except [Array<String>, String, nil] path prefixes of requests that pass untouched
    # @param max_body [Integer] bytes; longer responses pass through and are not stored
    # @param keep [Numeric] seconds to keep a stale response that the application can validate
    # @param heuristic [Numeric, false] the fraction of the time since Last-Modified for which a response
    #   without explicit freshness is fresh (RFC 9111 §4.2.2); false for none
    # @param longest_heuristic [Numeric] limit of `heuristic:`, in seconds
    # @param set_cookie [Symbol] :refuse never stores a response with Set-Cookie, nor one for which the
    #   application used a session; :explicit stores them with `public` or `s-maxage`, including the cookie
    # @param client_directives [Boolean] whether clients' Cache-Control and Pragma count; no-store always does
    # @param targeted [Array<String>] targeted fields, highest priority first (RFC 9213)
    # @param vary [Array<String>] request fields that all responses vary on, even those without Vary
    # @param cache_status [Boolean, Symbol] whether responses have Cache-Status (RFC 9211); :debug adds the
    #   key
    # @param wait [Numeric] seconds that simultaneous requests wait for the first of them
    # @param log [#call, nil] called with one line per outage of the store; default standard error
    # @param clock [#now] for tests
    # @yieldparam env [Hash] Rack environment
    # @yieldreturn [Boolean] whether to cache; in addition to `only:` and `except:`
    # @raise [ConfigurationError] if an option is invalid
    def initialize(app, store: nil, log: nil, **options, &condition)
      @app = app
      OptionCheck.log(HTTPCache, log)
      OptionCheck.check(HTTPCache, :store, store, "a store without near copies, which outlive an invalidation by another process",
                        "Castellan::Store::RedisStore.new(url: …)") { !store.is_a?(Store::TieredStore) }
      @options = CacheOptions.new(**options)
      @condition = condition
      @storage = Storage.new(store || Store::MemoryStore.new, log: log, clock: @options.clock)
      @reply = Reply.new(@options)
      @origin = Origin.new(app, @storage, @options, @reply)
      @flights = Cache::SingleFlight.new(timeout: @options.wait)
      @leases = @storage.leases(@options.wait)
      @unshared = BoundedCache.new(limit: 10_000)
      @refreshes = Refreshes.new
      HTTPCache.register(self, @storage)
      LiveStreams.watch
    rescue ArgumentError => error
      raise ConfigurationError, "Castellan::HTTPCache: #{error.message}"
    end

    # @return [Refreshes] the background validations
    attr_reader :refreshes

    # @param env [Hash] Rack environment
    # @return [Array] Rack response
    def call(env)
      return @app.call(env) unless handles?(env)

      request = ClientRequest.new(env, directives: @options.client_directives)
      case request.http_method
      when "GET", "HEAD" then request.unusual? ? bypass(request) : read(request)
      when *SAFE then @origin.pass(request, "method")
      else @origin.change(request)
      end
    end

    # Deletes the stored responses of a URL; see {HTTPCache.purge}.
    def purge(url)
      @storage.invalidate([ClientRequest.key(url)])
    end

    # See {HTTPCache.purge_tags}.
    def purge_tags(*tags)
      @storage.invalidate_tags(SurrogateTags.purged(tags))
    end

    private

    def handles?(env)
      @options.handles?(env["PATH_INFO"]) && !Castellan.off? && (@condition.nil? || @condition.call(env))
    end

    def bypass(request)
      return @reply.gateway_timeout(request, "only-if-cached") if request.control.key?("only-if-cached")

      @origin.pass(request, "bypass")
    end

    # @param waited [Array<String>] the groups in which the request has waited, see {#group_of}
    def read(request, waited: NONE)
      found = @storage.find(request)
      stored = found.stored
      time = now
      decision = stored ? Reuse.decide(request, stored, time) : nil
      case decision
      when :hit then return @reply.stored(request, stored, time)
      when :refresh
        refresh(request) unless request.no_store?
        return @reply.stored(request, stored, time)
      end
      return @reply.gateway_timeout(request, "only-if-cached") if request.control.key?("only-if-cached")

      forward(request, found, decision, waited)
    end

    def forward(request, found, decision, waited)
      reason = reason(found, decision)
      return @origin.fetch(request, without_credentials(found), reason).response if decision == :bypass
      return @origin.fetch(request, found, reason).response if decision == :request || alone?(request)

      group = group_of(request, found)
      return @origin.fetch(request, found, reason).response if waited.include?(group) || waited.size == MOST_TURNS

      collapse(request, found, reason, group, waited)
    end

    # RFC 9211 §2.2: "request" is for a fresh response that the client does not accept.
    def reason(found, decision)
      return found.reason unless decision

      (decision == :request && !found.stored.remaining(now).positive? ? :stale : decision).name
    end

    # A response that must not be served to a request with credentials must not be validated by one either.
    def without_credentials(found)
      Storage::Found.new(nil, nil, found.seen)
    end

    def permitted(request, found)
      found.stored.nil? || Reuse.permitted?(request, found.stored) ? found : without_credentials(found)
    end

    def alone?(request)
      request.head? || request.env.key?("HTTP_RANGE") || request.no_store? ||
        (@unshared[request.group]&.first || 0) > Clock.monotonic_ns
    end

    # @return [String] equal for requests that may get the same response, as far as its Vary is known
    def group_of(request, found)
      [request.group, *Vary.signature(found.names || NONE, request.original)].join("\0")
    end

    # Forwards one of several simultaneous requests. The others use its response if it is stored and matches. If
    # its Vary shows that they need another one, they wait once more, for those that need the same.
    def collapse(request, found, reason, group, waited)
      fetched = failure = nil
      # Requests after an invalidation do not wait for one that began before it.
      shared = @flights.run("#{group}\0#{@storage.generation(found.seen)}") do |first|
        fetched = first ? lease(request, group, reason) : fetch_unless_stored(request, group, reason)
        fetched&.shared&.shareable? ? fetched.shared : (FAILED if fetched && failed?(fetched))
      rescue StandardError => failure
        FAILED
      end
      raise failure if failure
      return fetched.response if fetched
      return read(request, waited: [*waited, FAILED]) if shared == FAILED # once more: a failure is not shared

      (shared && use(request, shared, reason)) || read(request, waited: [*waited, group])
    end

    def failed?(fetched) = (fetched.status || fetched.response.first) >= 500

    # Collapses the requests of several processes, if the store has leases.
    # @return [Origin::Fetched, nil] nil if another process did not store its response, or stored one that
    #   shows a different group
    def lease(request, group, reason)
      return fetch_unless_stored(request, group, reason) unless @leases

      stored = -> { (found = @storage.find(request)).stored && Reuse.decide(request, found.stored, now) == :hit }
      @leases.hold(group, stored: stored) do |state|
        state == :unstored ? unshare(request) : fetch_unless_stored(request, group, reason, note: group)
      end
    end

    # Reads the store again: another request may have ended between the first read and this turn.
    # @return [Origin::Fetched, nil] nil if a stored response shows a different group
    def fetch_unless_stored(request, group, reason, note: nil)
      found = @storage.find(request)
      stored = stored_elsewhere(request, found, reason)
      return stored if stored || group != group_of(request, found)

      fetch(request, permitted(request, found), reason, note: note)
    end

    def stored_elsewhere(request, found, reason)
      return unless found.stored

      signature = Vary.signature(found.names, request.original)
      shared = Origin::Shared.new(found.stored, found.names, signature, :stored)
      response = use(request, shared, reason) and Origin::Fetched.new(response, shared)
    end

    # Failures, 304s to a client's own conditions, and responses outdated by an invalidation do not predict
    # whether the next response can be stored.
    # @param note [String, nil] the group for {Leases#note_unstored}
    def fetch(request, found, reason, note: nil)
      fetched = @origin.fetch(request, found, reason, fill: fill?(request))
      status = fetched.status || fetched.response.first
      return fetched if status >= 500 || status == 304
      return fetched if fetched.shared && fetched.shared.outcome != :refused

      unshare(request)
      @leases.note_unstored(note, UNSHARED_SECONDS) if note
      fetched
    end

    # False if the last response of the URI was not stored: the application may then answer its clients with a 304.
    def fill?(request)
      unshared = @unshared[request.group] or return true
      Clock.monotonic_ns > unshared.first + (UNFILLED_SECONDS * 1_000_000_000)
    end

    def use(request, shared, reason)
      time = now
      return unless Vary.signature(shared.names, request.original) == shared.signature
      return unless @storage.valid(shared.stored)

      decision = Reuse.decide(request, shared.stored, time)
      return unless decision == :hit || (decision == :stale && instead_of_error?(request, shared, time))

      @reply.stored(request, shared.stored, time, outcome: "fwd=#{reason}; collapsed")
    end

    def instead_of_error?(request, shared, time)
      %i[failed disconnected].include?(shared.outcome) &&
        Reuse.instead_of_error?(request, shared.stored, time, disconnected: shared.outcome == :disconnected)
    end

    # Requests for a URI whose last response was not stored do not wait for each other for some seconds.
    def unshare(request)
      @unshared.fetch(request.group) { [0] }[0] = Clock.monotonic_ns + (UNSHARED_SECONDS * 1_000_000_000)
      nil
    end

    def refresh(request)
      @refreshes.start(request.group, request.env) do |env|
        copy = ClientRequest.new(env)
        @leases ? @leases.hold(copy.group, wait: false) { validate(copy) } : validate(copy)
      end
    end

    # @return [Array, nil] nil if another process has validated the response meanwhile
    def validate(request)
      found = @storage.find(request)
      return if found.stored && Reuse.decide(request, found.stored, now) == :hit

      @origin.fetch(request, permitted(request, found), "stale").response
    end

    def now
      @options.now
    end
  end
end
