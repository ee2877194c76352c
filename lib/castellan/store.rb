# frozen_string_literal: true

require "timeout"
require_relative "errors"
require_relative "clock"
require_relative "option_check"
require_relative "short_inspect"

module Castellan
  # Stores bytes by key with a time to live. All stores implement these methods:
  #
  #   store = Castellan::Store::MemoryStore.new(max_bytesize: 64 * 1024 * 1024)
  #   store.write_multi({ "users" => bytes }, ttl: 60)              # => ["users"], the written keys
  #   store.write_multi({ "lease" => "me" }, ttl: 5, if_absent: true) # => [] if the key exists
  #   store.read_multi(%w[users posts])                             # => { "users" => bytes }
  #   store.delete_multi(%w[users])
  #   store.increment("hits")                                       # => 1; reads back as "1"
  #   store.increment("hits", 5, ttl: 60)                           # => 6; the ttl: is that of a new counter
  #   store.compare_and_delete("lease", "me")                       # => true if the value was "me"
  #   store.supports?(:lease)  # => true if if_absent: is atomic for all clients
  #
  # Keys and values are Strings of any bytes; values are returned in binary. `ttl:` is in seconds, possibly
  # fractional (memcached rounds up); nil keeps the value while there is room. A store skips values that are
  # too large and omits their keys from the result. Any value may be evicted at any time. The only error for
  # external failures is {StoreError}; callers treat it as a miss. Check your own store with {Linter}.
  module Store
    METHODS = %i[read_multi write_multi delete_multi increment compare_and_delete supports?].freeze
    # What client libraries raise, besides errors of their own, for an answer that is damaged.
    DAMAGED = [ArgumentError, NoMethodError, RangeError, TypeError].freeze
    private_constant :METHODS, :DAMAGED

    # Returns a store for a store or a Rails cache.
    # @param object [Object]
    # @param name [String] of the option, for the message
    # @return [Object] the store itself, or an {ActiveSupportStore} around an ActiveSupport::Cache::Store
    # @raise [ConfigurationError] for any other object
    def self.for(object, name = "store:")
      return object if METHODS.all? { |name| object.respond_to?(name) }

      rails_cache = defined?(ActiveSupport::Cache::Store) && object.is_a?(ActiveSupport::Cache::Store)
      return ActiveSupportStore.new(object) if rails_cache

      raise ConfigurationError, "#{name} must be a store or Rails.cache, got #{shown(object)}; write for " \
                                "example Castellan::Store::RedisStore.new(url: ENV.fetch(\"REDIS_URL\"))"
    end

    # Describes an object without its contents, which may be a URL with a password.
    # @return [String]
    def self.shown(object)
      case object
      when nil, Symbol, Module then object.inspect
      else "an instance of #{object.class}"
      end
    end

    # Validates a ttl.
    # @param ttl [Numeric, #to_f, nil] seconds
    # @raise [ArgumentError] unless it is positive or nil
    def self.check_ttl(ttl)
      return if ttl.nil? || (ttl.is_a?(Numeric) ? ttl : ttl.to_f).positive?

      raise ArgumentError, "ttl: must be seconds above 0 or nil, got #{ttl.inspect}"
    end

    # @param timeout [Numeric] seconds of one read
    # @return [Numeric] seconds for a whole operation: at least one, because a thread of a busy process may
    #   wait tenths of a second for the others, which must not count as a failure of the server
    def self.deadline(timeout) = [timeout * 4, 1].max

    # Limits the total time of an operation on a server. A client's own timeout covers one read, so a server
    # that sends endlessly, or more than fits into memory, would otherwise block a request.
    # @param seconds [Numeric]
    # @raise [StoreError] after that time, or if the response exceeds the memory
    def self.within(seconds, &block)
      Timeout.timeout(seconds, &block)
    rescue Timeout::Error
      raise StoreError, "no answer within #{seconds} s"
    rescue NoMemoryError
      raise StoreError, "an answer larger than the memory"
    end
  end
end

require_relative "store/memory_store"
require_relative "store/null_store"
require_relative "store/directory_store"
require_relative "store/tiered_store"
require_relative "store/fail_safe"
require_relative "store/linter"

module Castellan
  module Store
    # Autoloaded, because each needs a client library.
    autoload :ActiveSupportStore, "castellan/store/active_support_store"
    autoload :MemcachedStore, "castellan/store/memcached_store"
    autoload :RedisStore, "castellan/store/redis_store"
  end
end
