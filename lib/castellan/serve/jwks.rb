# frozen_string_literal: true

require "json"
require "net/http"
require "timeout"
require "uri"

module Castellan
  module Serve
    # Fetches and caches the public keys of an issuer (JSON Web Key Set, RFC 7517). Thread-safe.
    #
    #   Jwks.new("https://id.example.org/jwks.json").find("key-1", "RS256")   # => an OpenSSL::PKey, or nil
    #
    # Fetches the keys with the first token, again after {FRESH} seconds, and for a token with an unknown key,
    # but at most once in {PAUSE} seconds, because clients may invent key names. If the issuer is unavailable,
    # it uses the previous keys for {STALE} seconds, or raises a 503 if there are none.
    class Jwks
      FRESH = 600
      PAUSE = 60
      STALE = 86_400
      # Seconds between two attempts as long as there are no keys.
      RETRY = 5
      # Seconds until a request to the issuer times out.
      TIMEOUT = 3
      MAX_BYTESIZE = 262_144
      MOST_KEYS = 100
      SMALLEST_RSA = 2048 # bits
      KINDS = { "RSA" => /\A[RP]S/, "EC" => /\AES/ }.freeze
      private_constant :FRESH, :PAUSE, :STALE, :RETRY, :TIMEOUT, :MAX_BYTESIZE, :MOST_KEYS, :SMALLEST_RSA, :KINDS

      Key = Struct.new(:id, :kind, :algorithm, :key)
      private_constant :Key

      # @param url [String] https, or http for localhost
      # @raise [ConfigurationError]
      def initialize(url)
        @uri = checked(url)
        @lock = Mutex.new
        @keys = nil
        @fetched = @tried = nil
      end

      # @param id [Object] the header parameter kid; with nil, the only key is used
      # @param algorithm [String] the header parameter alg
      # @return [OpenSSL::PKey::PKey, nil]
      # @raise [BadRequest] 503 if there are no keys
      def find(id, algorithm)
        refresh(waiting: @keys.nil?) if @keys.nil? || due?(FRESH)
        key = select(id, algorithm)
        return key if key

        refresh(waiting: true) if due?(PAUSE)
        select(id, algorithm)
      end

      private

      def select(id, algorithm)
        keys = @keys
        unavailable if keys.nil? || since(@fetched) > STALE
        found = id.nil? ? keys : keys.select { |key| key.id == id }
        found = found.select { |key| KINDS.fetch(key.kind).match?(algorithm) && (key.algorithm.nil? || key.algorithm == algorithm) }
        found.first.key if found.one?
      end

      # @return [Boolean] whether to fetch keys that are older than this
      def due?(seconds)
        return @tried.nil? || since(@tried) >= RETRY if @keys.nil?

        since(@fetched) >= seconds && since(@tried) >= [seconds, PAUSE].min
      end

      def since(moment)
        (Clock.monotonic_ns - moment) / 1_000_000_000
      end

      # While one thread fetches the keys, other threads use the previous keys.
      def refresh(waiting:)
        return unless waiting ? @lock.lock : @lock.try_lock

        begin
          fetch if due?(PAUSE)
        ensure
          @lock.unlock
        end
      end

      def fetch
        @tried = Clock.monotonic_ns
        @keys = parse(Timeout.timeout(TIMEOUT) { download })
        @fetched = @tried
      rescue StandardError => error
        warn("castellan: the keys of #{@uri} cannot be fetched: #{error.class}: #{error.message.lines.first}")
      end

      def download
        bytes = +""
        http = Net::HTTP.new(@uri.host, @uri.port)
        http.use_ssl = @uri.scheme == "https"
        http.open_timeout = http.read_timeout = http.ssl_timeout = TIMEOUT
        http.max_retries = 0
        http.start do
          http.request_get(@uri.request_uri, "accept" => "application/json") do |response|
            raise Error, "status #{response.code}" unless response.code == "200"

            response.read_body do |part|
              bytes << part
              raise Error, "the answer is longer than #{MAX_BYTESIZE} bytes" if bytes.bytesize > MAX_BYTESIZE
            end
          end
        end
        bytes
      end

      def parse(bytes)
        keys = JSON.parse(bytes, max_nesting: 10).fetch("keys").first(MOST_KEYS).filter_map { |entry| key(entry) }
        keys.any? ? keys.freeze : raise(Error, "no key can be used")
      end

      # Skips keys that are not public keys for signatures.
      def key(entry)
        return unless entry.is_a?(Hash) && KINDS.key?(entry["kty"]) && [nil, "sig"].include?(entry["use"])

        key = ::JWT::JWK.import(entry.slice("kty", "kid", "n", "e", "crv", "x", "y")).verify_key
        return if key.respond_to?(:n) && key.n.num_bits < SMALLEST_RSA

        Key.new(entry["kid"], entry["kty"], entry["alg"], key).freeze
      rescue ::JWT::JWKError, OpenSSL::OpenSSLError, ArgumentError, TypeError, NoMethodError
        nil
      end

      def unavailable
        raise BadRequest.new("tokens cannot be verified at the moment; try again", status: 503, title: "Service unavailable")
      end

      def checked(url)
        uri = URI.parse(url.to_s)
        local = uri.scheme == "http" && ["localhost", "127.0.0.1", "[::1]"].include?(uri.host)
        return uri if (uri.scheme == "https" && uri.host) || local

        raise ConfigurationError, "authenticate jwt: jwks_url: must begin with https://, got #{url.inspect}; http is for this machine alone"
      rescue URI::InvalidURIError
        raise ConfigurationError, "authenticate jwt: jwks_url: is not a URL: #{url.inspect}"
      end
    end
  end
end
