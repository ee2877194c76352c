# frozen_string_literal: true

require_relative "../errors"
Castellan::ConfigurationError.require_gem("dalli", "Castellan::Store::MemcachedStore")
require "digest/sha2"
require "zlib"
if Gem::Version.new(Dalli::VERSION) < Gem::Version.new("4.0.1")
  raise Castellan::ConfigurationError, "Castellan::Store::MemcachedStore needs dalli 4.0.1 or later, got #{Dalli::VERSION}, " \
                                       "which loads values with Marshal in spite of `raw: true`; write gem \"dalli\", \">= 4.0.1\""
end

module Castellan
  module Store
    # Applies dalli's timeout to IO#gets of Castellan's connections, as IO#timeout does since Ruby 3.2.
    module TimedGets
      def gets(...)
        raise Timeout::Error, "no answer within #{options[:socket_timeout]} s" \
          if options[:castellan] && !wait_readable(options[:socket_timeout])

        super
      end
    end
    private_constant :TimedGets
    Dalli::Socket::TCP.prepend(TimedGets) unless IO.method_defined?(:timeout=)

    # Stores bytes in memcached, shared by all processes, with dalli and without Marshal.
    #
    #   store = MemcachedStore.new("127.0.0.1:11211", namespace: "api:")
    #
    # Lifetimes are rounded up to whole seconds and last a year at most. Values larger than the server's item size (default 1 MB) are
    # not stored. Keys that memcached does not accept (longer than 250 bytes with the namespace, blanks,
    # control characters, non-ASCII) are digested. Each value starts with a checksum of its key: a connection
    # that was interrupted in the middle of a response can return another key's value (dalli#956), which then
    # counts as a miss. Counters have no checksum, because memcached increments only numbers.
    class MemcachedStore
      include ShortInspect

      PLAIN = /\A[!-}]{1,200}\z/ # without "~", the prefix of digested keys
      MARK = "\x01".b.freeze # first byte of values with a checksum; counters start with a digit
      LONGEST = 365 * 86_400 # seconds; memcached takes no time after 2038
      private_constant :PLAIN, :MARK, :LONGEST

      # @param servers [String, Array<String>, Dalli::Client] host:port, or a client with `raw: true`: other
      #   clients load values with Marshal, so anyone who can write to memcached could run code here
      # @param namespace [String] key prefix; printable ASCII, at most 40 characters
      # @param timeout [Numeric] seconds for connecting, and for each read and write; raise it if the server
      #   is far away. A whole operation ends after {Store.deadline}
      # @param max_bytesize [Integer] the server's item size (`-I`)
      # @raise [ConfigurationError] if an option or the client is invalid
      def initialize(servers = "127.0.0.1:11211", namespace: "", timeout: 0.05, max_bytesize: 1024 * 1024)
        OptionCheck.check(self.class, :namespace, namespace, "a String of at most 40 printable ASCII characters", "\"api:\"") do
          namespace.is_a?(String) && namespace.b.match?(/\A[!-}]{0,40}\z/)
        end
        OptionCheck.seconds(self.class, :timeout, timeout, 0.05)
        OptionCheck.whole(self.class, :max_bytesize, max_bytesize, "1024 * 1024", unit: "bytes")
        @client = servers.is_a?(Dalli::Client) ? raw!(servers) : Dalli::Client.new(servers, client_options(timeout))
        @several = servers.is_a?(Array) && servers.size > 1
        @deadline = Store.deadline(timeout)
        @namespace = namespace.b.freeze
        @limit = max_bytesize - 512 # the server counts its header and the key, too
        freeze
      end

      # @return [Hash{String => String}]
      def read_multi(keys)
        return {} if keys.empty?

        names = keys.map { |key| name(key) }
        values = guard { values_of(names) }
        found = {}
        keys.each_with_index do |key, index|
          bytes = opened(names[index], values[names[index]]) and found[key] = bytes
        end
        found
      end

      # @return [Array<String>] the keys that were written
      # @raise [StoreError] if none was, because a server failed
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        seconds = ttl && [ttl.ceil, LONGEST].min
        written = []
        guard do
          each_or_raise(entries, -> { written.any? }) { |key, bytes| written << key if write(name(key), bytes, seconds, if_absent) }
        end
        written
      end

      def delete_multi(keys)
        guard { each_or_raise(keys) { |key| @client.delete(name(key)) } }
        nil
      end

      # @return [Integer]
      # @raise [StoreError] if the value is not a number
      def increment(key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        guard { @client.incr(name(key), amount, ttl&.ceil, amount) }
      end

      # @return [Boolean]
      def compare_and_delete(key, token)
        name = name(key)
        guard do
          bytes, cas = @client.get_cas(name)
          next false if opened(name, bytes) != token.b

          @client.delete_cas(name, cas) ? true : false
        end
      end

      def supports?(feature)
        feature == :lease
      end

      private

      def raw!(client)
        options = client.instance_variable_get(:@options)
        return client if options.is_a?(Hash) && options[:raw]

        raise ConfigurationError, "MemcachedStore needs a client that loads no objects: write Dalli::Client.new(servers, raw: true, …), " \
                                  "or pass the servers, as in MemcachedStore.new(\"127.0.0.1:11211\")"
      end

      # Reconnects after 1 s; by default dalli treats a server as down for 30 s. A second attempt would only
      # take as long as the timeout again. Without failover, because a server that was unreachable for a while would
      # return values that were deleted or replaced on another server.
      def client_options(timeout)
        { raw: true, protocol: :meta, socket_timeout: timeout, socket_max_failures: 1, down_retry_delay: 1, failover: false,
          compress: false, value_max_bytes: 1 << 40, castellan: true }
      end

      # Dalli hides that a server is down in get_multi, but not in get and alive!, which asks one of the servers. The keys of
      # one of several servers that is down are misses.
      def values_of(names)
        return { names.first => @client.get(names.first) } if names.size == 1

        values = @client.get_multi(*names)
        @client.alive! if values.empty? && !@several
        values
      rescue Dalli::RingError
        raise unless @several

        {}
      end

      # Dalli hides that a server is down in set_multi, so each key is written by itself: a write that is lost must not look
      # like one that succeeded. A server that is down does not keep the others from getting their keys.
      # @param done [#call] whether to ignore a failure
      def each_or_raise(all, done = -> { false })
        failure = nil
        all.each do |one|
          yield one
        rescue Dalli::DalliError => error
          failure ||= error
        end
        raise failure if failure && !done.call
      end

      def name(key)
        return @namespace + key if PLAIN.match?(key)

        "#{@namespace}~#{[Digest::SHA256.digest(key)].pack('m0')}"
      rescue ArgumentError # invalid bytes in the key's encoding
        name(key.b)
      end

      def write(name, bytes, seconds, if_absent)
        return !@client.delete(name) && false if bytes.bytesize > @limit

        written = @client.public_send(if_absent ? :add : :set, name, sealed(name, bytes), seconds, raw: true)
        written ? true : false
      end

      def sealed(name, bytes)
        MARK + [Zlib.crc32(name)].pack("N") << bytes.b
      end

      # Returns the value without its checksum, a counter unchanged, and nil for another key's value or a
      # non-String.
      def opened(name, bytes)
        return unless bytes.is_a?(String)

        bytes = bytes.b
        return (bytes.strip if bytes.match?(/\A\d+ *\z/)) unless bytes.start_with?(MARK)

        bytes.byteslice(5, bytes.bytesize) if bytes.byteslice(1, 4).unpack1("N") == Zlib.crc32(name)
      end

      # Closes a connection that timed out in the middle of a response. Dalli raises RuntimeError and others for damaged
      # answers.
      def guard(&block)
        Store.within(@deadline, &block)
      rescue StoreError => error
        @client.close
        raise StoreError, "MemcachedStore: #{error.message}"
      rescue SystemCallError, IOError, SocketError, *DAMAGED => error
        raise StoreError, "MemcachedStore: #{error.class}: #{error.message}"
      rescue RuntimeError => error # not of a subclass of the application, such as for its own Timeout
        raise unless error.is_a?(Dalli::DalliError) || error.instance_of?(RuntimeError)

        raise StoreError, "MemcachedStore: #{error.class}: #{error.message}"
      end
    end
  end
end
