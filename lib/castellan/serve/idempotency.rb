# frozen_string_literal: true

require "digest/sha2"
require "json"
require "securerandom"
require "stringio"
require "zlib"

module Castellan
  module Serve
    # Performs a POST once per Idempotency-Key (draft-ietf-httpapi-idempotency-key-header).
    #
    #   idempotency store: Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]), ttl: 86_400
    #
    # Stores the first successful response and returns it to repeated requests. The status is 422 for a
    # different request with the same key, and 409 while the first request is running. Failures are not
    # stored, because they have changed nothing and can be repeated; if the connection to the database was lost
    # during COMMIT, which may have succeeded, further requests get a 409. If a process dies between its commit and
    # the store, its lease ends and the next request is performed again. Frozen.
    class Idempotency
      # RFC 8941, section 3.3.3, with or without the quotes.
      KEY = /\A(?:"([\x21\x23-\x5B\x5D-\x7E]{1,255})"|([\x21\x23-\x2B\x2D-\x3A\x3C-\x5B\x5D-\x7E]{1,255}))\z/
      # Seconds after which the key of a running request is released.
      LEASE = 60
      RUNNING = "L"
      DONE = "R"
      FINGERPRINT = 32 # bytes
      SURELY_KEPT = 16_384 # bytes
      KEPT_HEADERS = %w[content-type content-length location etag cache-control vary].freeze
      private_constant :KEY, :LEASE, :RUNNING, :DONE, :FINGERPRINT, :SURELY_KEPT, :KEPT_HEADERS

      # @param store [Object] see {Store}; must be shared by all processes that serve requests
      # @param ttl [Numeric] the seconds for which to store a response
      # @param required [Boolean] whether a POST without a key gives a 400
      # @yieldparam viewer [Object]
      # @yieldreturn [String, Integer] identifies the viewer; default: the viewer's id, or a viewer that is
      #   itself a String or Integer
      # @raise [ConfigurationError]
      def initialize(store:, ttl: 86_400, required: false, &namespace)
        wrong("ttl: must be seconds above #{LEASE}, got #{ttl.inspect}") unless ttl.is_a?(Numeric) && ttl > LEASE
        wrong("store: must support leases, got #{store.class}; use a RedisStore, MemcachedStore or, for one process, a MemoryStore") \
          unless store.respond_to?(:supports?) && store.supports?(:lease)

        @store = store
        @ttl = ttl
        @required = required
        @namespace = namespace || method(:default_namespace)
        freeze
      end

      # @param env [Hash] Rack environment of a POST
      # @param viewer [Object]
      # @yieldreturn [Array] Rack response; called if the request must be performed
      # @return [Array] Rack response
      # @raise [BadRequest]
      def call(env, viewer)
        key = key(env["HTTP_IDEMPOTENCY_KEY"]) or return yield
        name = name(key, viewer)
        lease = RUNNING + fingerprint(env, body(env)) + SecureRandom.bytes(16)
        return again(name, lease[1, FINGERPRINT]) unless take(name, lease)

        perform(name, lease) { yield }
      end

      private

      # Without an answer (it is late, or an interrupt arrives) the store may have the lease; nothing is written yet.
      # redis-client and dalli write again after a lost connection; the second write then fails because of the first.
      def take(name, lease)
        taken = write(name, lease, LEASE, if_absent: true) || read(name) == lease
        answered = true
        taken
      ensure
        forget(name, lease) unless answered
      end

      def perform(name, lease)
        response = yield
        outcome = response.first < 300 ? :done : :refused
        response
      rescue StandardError => error
        outcome = :written if written?(error)
        raise
      ensure
        case outcome
        when :done then keep(name, lease, response)
        when :written then hold(name, lease)
        else forget(name, lease)
        end
      end

      # @return [Boolean] whether the data is written, or may be
      def written?(error)
        return true if error.is_a?(Write::Transaction::Committed)

        unconfirmed = [error, error.cause].find { |one| one.is_a?(Write::Transaction::Unconfirmed) }
        !unconfirmed.nil? && Write::DatabaseError.kind(unconfirmed) == :away
      end

      # The data is written, so the client gets its response even if the store fails. The lease then stays.
      def keep(name, lease, response)
        status, headers, body = response
        sent = "#{JSON.generate([status, headers.slice(*KEPT_HEADERS)])}\n".b
        body.each { |part| sent << part.b }
        kept = DONE.b << lease[1, FINGERPRINT] << checksum(name, sent) << sent
        (fits?(name, kept) && @store.write_multi({ name => kept }, ttl: @ttl).any?) || hold(name, lease)
      rescue StoreError => error
        warn("castellan: the response to an Idempotency-Key was not kept: #{error.message}")
      end

      # A store deletes the value before one that is too large; without the lease, a repeated request would be performed.
      def fits?(name, kept)
        kept.bytesize <= SURELY_KEPT || @store.write_multi({ "#{name}:size" => kept }, ttl: 1).any?
      end

      # Repeated requests get a 409 from now on.
      def hold(name, lease)
        @store.write_multi({ name => lease }, ttl: @ttl)
      rescue StoreError => error
        warn("castellan: an Idempotency-Key was not kept: #{error.message}")
      end

      def forget(name, lease)
        @store.compare_and_delete(name, lease)
      rescue StoreError
        nil # the lease ends by itself
      end

      def again(name, fingerprint)
        kept = read(name)
        refuse("a request with this key has just ended; send it again", 409) if kept.nil?
        refuse("another request was sent with this key; choose a new key for each", 422) if kept[1, FINGERPRINT] != fingerprint
        sent = sent(name, kept) or refuse("a request with this key is running, or has no response that could be kept", 409)

        head, body = sent.split("\n", 2)
        status, headers = JSON.parse(head)
        [status, headers.merge("idempotent-replayed" => "true"), body.empty? ? [] : [body.force_encoding(Encoding::UTF_8)]]
      end

      # @return [String, nil] nil for a lease, and for a response that is damaged or of another key
      def sent(name, kept)
        checksum, sent = kept.unpack("@#{FINGERPRINT + 1}a4a*")
        sent if kept.start_with?(DONE) && checksum == checksum(name, sent)
      end

      def checksum(name, sent) = [Zlib.crc32(sent, Zlib.crc32(name))].pack("N")

      def read(name)
        kept = @store.read_multi([name])[name]&.b
        kept unless kept && kept.bytesize <= FINGERPRINT
      rescue StoreError
        unavailable
      end

      def write(name, bytes, ttl, **options)
        @store.write_multi({ name => bytes }, ttl: ttl, **options).any?
      rescue StoreError
        unavailable
      end

      def key(field)
        if field.nil?
          @required ? refuse("send the header with a new value for each request", 400) : return
        end

        found = KEY.match(field.b) or refuse("must be a quoted string of 1 to 255 visible ASCII characters", 400)
        found[1] || found[2]
      end

      # A longer body is rejected.
      def body(env)
        bytes = env["rack.input"]&.read(Write::Body::LIMIT + 1) || +""
        env["rack.input"] = StringIO.new(bytes.b)
        bytes
      end

      def name(key, viewer)
        owner = @namespace.call(viewer)
        wrong("the block must return a String, a Symbol or an Integer for #{viewer.class}, got #{owner.class}") \
          unless [String, Integer, Symbol].any? { |kind| owner.is_a?(kind) }

        "castellan:idempotency:#{digest([owner.class.name, owner.to_s, key])}"
      end

      def fingerprint(env, body)
        [digest([*env.values_at("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE"), body].map(&:to_s))].pack("H*")
      end

      def digest(texts)
        Digest::SHA256.hexdigest(texts.map { |text| "#{text.bytesize}:".b << text.b }.join)
      end

      def default_namespace(viewer)
        case viewer
        when String, Integer, Symbol then viewer
        else
          return "#{viewer.class.name}:#{viewer.id}" if viewer.respond_to?(:id) && viewer.class.name && !viewer.id.nil?

          wrong("needs a block that returns another value for each viewer, such as { |viewer| viewer[\"sub\"] }; #{viewer.class} has no id")
        end
      end

      def refuse(detail, status)
        title = { 400 => "Bad request", 409 => "Conflict", 422 => "Idempotency-Key used before" }.fetch(status)
        raise BadRequest.new("Idempotency-Key: #{detail}", status: status, title: title, header: "Idempotency-Key",
                                                           headers: status == 409 ? { "retry-after" => "1" } : {})
      end

      def wrong(text)
        raise ConfigurationError, "idempotency: #{text}"
      end

      def unavailable
        raise BadRequest.new("Idempotency-Key: keys cannot be checked at the moment; nothing was written, try again",
                             status: 503, title: "Service unavailable")
      end
    end
  end
end
