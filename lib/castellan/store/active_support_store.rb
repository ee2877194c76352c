# frozen_string_literal: true

require "active_support"
require "active_support/cache"
require "digest/sha2"
require_relative "../recording"

module Castellan
  module Store
    # Stores bytes in an ActiveSupport::Cache::Store such as `Rails.cache`.
    #
    #   store = ActiveSupportStore.new(Rails.cache)
    #
    # The slowest store: Rails creates an entry, an event and a key per value. If `Rails.cache` is Redis, a
    # RedisStore on the same server reads 100 keys several times as fast. {#compare_and_delete} reads, then
    # deletes, which is not atomic: it may delete a lease that another process has just acquired, and one
    # document is then computed twice. Only the application may write to the directory of a FileStore, because
    # Rails loads the files with Marshal.
    class ActiveSupportStore
      include ShortInspect

      # Rails caches whose `unless_exist: true` is atomic for all clients.
      LEASING = %w[MemoryStore RedisCacheStore].freeze
      RAW = { raw: true, compress: false }.freeze
      private_constant :LEASING, :RAW

      # @param cache [ActiveSupport::Cache::Store] no MemCacheStore, which loads stored bytes with Marshal
      # @param deadline [Numeric] seconds for a whole operation
      # @raise [ConfigurationError] for a MemCacheStore or any other object, or unless deadline is above 0
      def initialize(cache, deadline: 1)
        unless cache.is_a?(ActiveSupport::Cache::Store)
          raise ConfigurationError,
                "ActiveSupportStore needs an ActiveSupport::Cache::Store such as Rails.cache, got #{OptionCheck.shown(cache)}"
        end

        kinds = cache.class.ancestors.map { |ancestor| ancestor.name.to_s.delete_prefix("ActiveSupport::Cache::") }
        if kinds.include?("MemCacheStore")
          raise ConfigurationError, "ActiveSupportStore does not take a MemCacheStore, which loads with Marshal what is stored in " \
                                    "memcached: write Castellan::Store::MemcachedStore.new(\"127.0.0.1:11211\") with its servers"
        end

        @cache = outspoken(cache)
        @leases = kinds.intersect?(LEASING)
        @deadline = OptionCheck.seconds(self.class, :deadline, deadline, 1)
        freeze
      end

      # @return [Hash{String => String}]
      def read_multi(keys)
        return {} if keys.empty?

        names = keys.to_h { |key| [key, name(key)] }
        values = guard { @cache.read_multi(*names.values, raw: true) }
        names.each_with_object({}) do |(key, name), found|
          bytes = values[name]
          found[key] = bytes.to_s.b if bytes.is_a?(String) || bytes.is_a?(Integer)
        end
      end

      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        return [] if @cache.is_a?(ActiveSupport::Cache::NullStore) # its `write` returns true

        options = { **RAW, expires_in: ttl, unless_exist: if_absent }.compact
        guard { entries.filter_map { |key, bytes| key if @cache.write(name(key), bytes.b, **options) } }
      end

      def delete_multi(keys)
        guard { @cache.delete_multi(keys.map { |key| name(key) }) } unless keys.empty?
        nil
      end

      # @return [Integer]
      # @raise [StoreError] if the cache cannot count
      def increment(key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        options = { expires_in: ttl&.ceil }.compact
        guard { @cache.increment(name(key), amount, **options) } or raise StoreError, "ActiveSupportStore: #{@cache.class} did not count"
      end

      # @return [Boolean]
      def compare_and_delete(key, token)
        return false unless read_multi([key])[key] == token.b

        guard { @cache.delete(name(key)) } ? true : false
      end

      def supports?(feature)
        feature == :lease && @leases
      end

      private

      # A RedisCacheStore tells only its `error_handler` that Redis fails, and returns nothing, as if it had missed.
      # Each request would then wait for Redis again.
      def outspoken(cache)
        return cache unless cache.instance_variable_defined?(:@error_handler)

        handler = cache.instance_variable_get(:@error_handler)
        tell = lambda do |exception:, **details|
          handler&.call(exception: exception, **details)
          raise StoreError, "#{exception.class}: #{exception.message}"
        end
        cache.dup.tap { |own| own.instance_variable_set(:@error_handler, tell) }
      end

      # Rails' stores treat keys as text, and each handles long keys and special characters differently.
      def name(key)
        return key if key.ascii_only? && key.match?(/\A[!-}]{1,200}\z/)

        "~#{[Digest::SHA256.digest(key)].pack('m0').tr('+/', '-_')}"
      end

      # Rescues StandardError, because cache libraries have no common error class. Solid Cache sends statements, which
      # are not the application's: the second look before a document is computed would be a repeated query.
      def guard(&block)
        Recording.read(Recording::OWN, nil) { Store.within(@deadline, &block) }
      rescue StoreError => error
        raise StoreError, "ActiveSupportStore: #{error.message}"
      rescue StandardError => error
        raise StoreError, "ActiveSupportStore: #{error.class}: #{error.message}"
      end
    end
  end
end
