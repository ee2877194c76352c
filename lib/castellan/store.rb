# frozen_string_literal: true

require "timeout"
require_relative "errors"
require_relative "clock"

module Castellan
  # Bytes by key with a lifetime. Every store answers these, and nothing else is asked of it:
  #
  #   store = Castellan::Store::MemoryStore.new(max_bytesize: 64 * 1024 * 1024)
  #   store.write_multi({ "users" => bytes }, ttl: 60)              # => ["users"], the keys that were written
  #   store.write_multi({ "lease" => "me" }, ttl: 5, if_absent: true) # => [] when somebody holds it
  #   store.read_multi(%w[users posts])                             # => { "users" => bytes }
  #   store.delete_multi(%w[users])
  #   store.increment("hits")                                       # => 1; reads back as "1"
  #   store.compare_and_delete("lease", "me")                       # => true when it was "me"
  #   store.supports?(:lease)                                       # whether if_absent: is atomic for all who share the store
  #
  # Keys are Strings of any bytes and any length, values Strings of any bytes, read back in binary. `ttl:` is in seconds,
  # may be a fraction (memcached rounds up to whole ones), nil means for as long as there is room. What a store cannot
  # keep (too large) it does not write, and does not name among the written keys. A value that is there may be gone at the
  # next look: a store is a cache. The only error that leaves a store for a reason outside the program is {StoreError}, and
  # its caller takes it for a miss. {Linter} checks a store of your own.
  module Store
    # What a store's ttl: may be.
    # @raise [ArgumentError]
    def self.check_ttl(ttl)
      return if ttl.nil? || (ttl.is_a?(Numeric) ? ttl : ttl.to_f).positive?

      raise ArgumentError, "ttl: must be seconds above 0 or nil, got #{ttl.inspect}"
    end

    # Ends an operation on a server as a whole: a client's own timeouts are for each read, so a server that sends without end, or more
    # than fits into memory, would hold a request.
    # @param seconds [Numeric]
    # @raise [StoreError]
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
require_relative "store/fail_safe"
require_relative "store/linter"

module Castellan
  module Store
    # Loaded when named, because each needs a client library.
    autoload :ActiveSupportStore, "castellan/store/active_support_store"
    autoload :DirectoryStore, "castellan/store/directory_store"
    autoload :MemcachedStore, "castellan/store/memcached_store"
    autoload :RedisStore, "castellan/store/redis_store"
  end
end
