# frozen_string_literal: true

require_relative "../errors"
Castellan::ConfigurationError.require_gem("redis-client", "Castellan::Store::RedisStore")

module Castellan
  module Store
    # Stores bytes in Redis or Valkey, shared by all processes, with redis-client.
    #
    #   store = RedisStore.new(url: ENV.fetch("REDIS_URL"), size: 5, timeout: 0.05)
    #   store = RedisStore.new(RedisClient.config(url: url).new_pool(size: 5))   # your own client or pool
    #   store = RedisStore.new(RedisClient.sentinel(name: "cache", sentinels: […], **options).new_pool)
    #   store = RedisStore.new(RedisClient.cluster(nodes: urls, **options).new_pool(size: 5))
    #
    # A client of your own needs options such as `timeout: 0.05, reconnect_attempts: 0`. Any thread-safe
    # client with `call` and `pipelined` will do. Configure the server with `maxmemory` and an `allkeys-*` policy;
    # by default its memory is unlimited. A cluster reads and deletes key by key in one pipeline, because MGET
    # and UNLINK must not cross slots.
    class RedisStore
      include ShortInspect

      COMPARE_AND_DELETE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"
      private_constant :COMPARE_AND_DELETE

      # @param client [RedisClient::Pooled, RedisClient::Cluster, #call, nil] one that threads can share
      # @param url [String, nil] redis://, rediss:// or unix://
      # @param size [Integer, nil] connections in the pool, by default 5; as many as the process has threads
      # @param timeout [Numeric] seconds for connecting, for each read and write, and for a connection of the
      #   pool; raise it if the server is far away. A whole operation ends after {Store.deadline}
      # @param namespace [String] key prefix
      # @param max_bytesize [Integer] of one value. Larger ones are not sent: they would not arrive within the
      #   timeout, and that would count as an outage of the server
      # @raise [ConfigurationError] if an option is invalid, or unless there is either a URL or a client
      def initialize(client = nil, url: nil, size: nil, timeout: 0.05, namespace: "", max_bytesize: 8 * 1024 * 1024)
        raise ConfigurationError, "RedisStore needs url: \"redis://…\" or a client of redis-client" unless client || url

        OptionCheck.seconds(self.class, :timeout, timeout, 0.05)
        @client = client ? own(client, url, size) : pool(url, size || 5, timeout)
        @cluster = client.class.name.to_s.include?("Cluster")
        @namespace = OptionCheck.check(self.class, :namespace, namespace, "a String", "\"api:\"") { namespace.is_a?(String) }.b.freeze
        @deadline = Store.deadline(timeout)
        @limit = OptionCheck.whole(self.class, :max_bytesize, max_bytesize, "8 * 1024 * 1024", unit: "bytes")
        freeze
      end

      # @return [Hash{String => String}]
      def read_multi(keys)
        return {} if keys.empty?

        found = {}
        values = array(@cluster ? each_key("GET", keys) : call("MGET", *names(keys)), keys)
        keys.each_with_index { |key, index| (bytes = values[index]).is_a?(String) && (found[key] = bytes.b) }
        found
      end

      # @return [Array<String>] the keys that were written; those of too large values are deleted
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        large = entries.filter_map { |key, bytes| key if bytes.bytesize > @limit }
        delete_multi(large) unless if_absent
        entries = entries.except(*large) if large.any?
        return [] if entries.empty?

        options = [*(["PX", milliseconds(ttl)] if ttl), *("NX" if if_absent)]
        answers = guard { @client.pipelined { |pipeline| entries.each { |key, bytes| pipeline.call("SET", name(key), bytes, *options) } } }
        answers = array(answers, entries)
        entries.keys.each_with_index.filter_map { |key, index| key if answers[index] == "OK" }
      end

      def delete_multi(keys)
        return if keys.empty?

        @cluster ? each_key("UNLINK", keys) : call("UNLINK", *names(keys))
        nil
      end

      # @return [Integer]
      # @raise [StoreError] if the value is not a number
      def increment(key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        name = name(key)
        answers = guard do
          @client.pipelined do |pipeline|
            pipeline.call("SET", name, "0", "PX", milliseconds(ttl), "NX") if ttl
            pipeline.call("INCRBY", name, amount)
          end
        end
        value = Array(answers).last
        value.is_a?(Integer) ? value : raise(StoreError, "RedisStore: INCRBY returned #{value.inspect[0, 60]}")
      end

      # @return [Boolean]
      def compare_and_delete(key, token)
        call("EVAL", COMPARE_AND_DELETE, 1, name(key), token) == 1
      end

      def supports?(feature)
        feature == :lease
      end

      private

      def own(client, url, size)
        pool = "RedisClient.config(url: …).new_pool(size: 5)"
        unless client.respond_to?(:call) && client.respond_to?(:pipelined)
          raise ConfigurationError, "RedisStore needs a client with call and pipelined, such as #{pool}, got #{client.class}"
        end
        if url || size
          raise ConfigurationError, "#{self.class} takes either a client or url: and size:, got a client and #{url ? "url:" : "size:"}; " \
                                    "give both to the client, such as #{pool}"
        end
        return client unless client.is_a?(RedisClient)

        raise ConfigurationError, "RedisStore needs a pool, because threads cannot share a RedisClient, which is one connection: " \
                                  "write #{pool}"
      end

      # The messages omit the URL, which may contain a password.
      def pool(url, size, timeout)
        OptionCheck.check(self.class, :url, url, "a URL of redis://, rediss:// or unix://", "\"redis://localhost:6379/0\"",
                          given: OptionCheck.kind(url)) { url.is_a?(String) && url.b.match?(%r{\A(?:rediss?|unix)://}i) }
        OptionCheck.whole(self.class, :size, size, 5, unit: "connections")
        RedisClient.config(url: url, timeout: timeout, reconnect_attempts: 0).new_pool(size: size, timeout: timeout)
      rescue URI::Error, ArgumentError => error
        raise ConfigurationError, "#{self.class} url: cannot be read (#{error.class}); write for example " \
                                  "url: \"redis://:p%40ssword@localhost:6379/0\", with special characters encoded", cause: nil
      end

      def milliseconds(ttl) = [(ttl * 1000).ceil, 1].max

      def name(key)
        @namespace.empty? ? key : @namespace + key.b
      end

      def names(keys)
        @namespace.empty? ? keys : keys.map { |key| name(key) }
      end

      def each_key(command, keys)
        guard { @client.pipelined { |pipeline| keys.each { |key| pipeline.call(command, name(key)) } } }
      end

      def call(*command)
        guard { @client.call(*command) }
      end

      def array(answer, asked)
        return answer if answer.is_a?(Array) && answer.size == asked.size

        raise StoreError, "RedisStore: the server returned #{answer.inspect[0, 60]} for #{asked.size} keys"
      end

      def guard(&block)
        Store.within(@deadline) { reconnecting(&block) }
      rescue StoreError => error
        raise StoreError, "RedisStore: #{error.message}"
      rescue RedisClient::Error, ConnectionPool::TimeoutError, *DAMAGED => error
        raise StoreError, "RedisStore: #{error.class}: #{error.message}"
      end

      # The server may have closed the connection, after a restart for example. After a timeout, a second
      # attempt would only take as long again.
      def reconnecting
        yield
      rescue RedisClient::TimeoutError, RedisClient::CannotConnectError
        raise
      rescue RedisClient::ConnectionError
        yield
      end
    end
  end
end
