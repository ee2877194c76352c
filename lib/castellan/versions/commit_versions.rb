# frozen_string_literal: true

require "securerandom"

module Castellan
  module Versions
    # Changes version tokens in a shared store by ORM callbacks; for databases without triggers.
    #
    #   versions = CommitVersions.new(Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]))
    #   versions.watch(User, Role)                       # ActiveRecord or Sequel models, at boot
    #   versions.current([Dependency.new("users")])      # => "9f86d081884c7d65"
    #   versions.changed(%w[users])                      # after a bulk or raw change that skips callbacks
    #
    # Tokens are random, not counted: a counter that the store evicted would restart and match stale
    # documents.
    #
    # Misses changes without callbacks (update_all, delete_all, insert_all, raw SQL, Sequel datasets, other
    # programs, database cascades), changes between the commit and the write to the store, and those of a
    # process that fails in between. So set a `ttl:`. If the store fails in between, also one that hides it, as
    # Rails.cache on Redis does, this process has no token of the table until the store has taken a new one; other
    # processes do not notice. A MemoryStore works for a single process only.
    class CommitVersions
      PREFIX = "castellan:version:"
      private_constant :PREFIX

      # @param store [Object] see {Store.for}
      # @param log [#call, nil] called with a line if the store fails; default standard error
      def initialize(store, log: nil)
        @store = Store.for(store)
        @log = log || ->(line) { warn(line) }
        @tokens = Store::FailSafe.new(@store, log: @log)
        @unwritten = {} # key => the last change whose token the store has not taken
        @lock = Mutex.new
        freeze
      end

      # @param dependencies [Array<Dependency>]
      # @return [String, nil] nil if the store fails or stores nothing
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?

        keys = dependencies.map { |dependency| PREFIX + dependency.table }.uniq
        found = @tokens.read_multi(keys, miss: nil) or return
        late = @unwritten.empty? ? @unwritten : @lock.synchronize { @unwritten.slice(*keys) }
        return unless late.empty? || write(late)

        found = draw(keys) if found.size < keys.size || late.any?
        keys.map { |key| found[key] || (return nil) }.join(".")
      end

      # Sets new tokens; call it after the commit. Bypasses {Store::FailSafe}: a skipped write would leave
      # stale documents.
      # @param tables [Array<String, Symbol>]
      def changed(tables)
        changes = tables.to_h { |table| [PREFIX + table.to_s, Object.new] }
        known = @lock.synchronize { @unwritten.any?.tap { @unwritten.merge!(changes) } }
        return if write(changes) || known

        @log.call("castellan: #{tables.join(', ')} changed, and cached answers stay until they expire, because the store fails")
        nil
      end

      # Adds callbacks that change a model's table after each commit of a record.
      # @param models [Array<Class>] ActiveRecord or Sequel models
      def watch(*models)
        models.each do |model|
          if model.respond_to?(:after_commit) then watch_active_record(model)
          elsif model.respond_to?(:db) then watch_sequel(model)
          else raise ConfigurationError, "CommitVersions watches ActiveRecord and Sequel models, got #{model.inspect}"
          end
        end
        nil
      end

      private

      # @param changes [Hash{String => Object}] a change that another thread notes meanwhile stays
      # @return [Boolean] whether the store has taken new tokens of all
      def write(changes)
        written = @store.write_multi(changes.transform_values { SecureRandom.hex(8) })
        @lock.synchronize { written.each { |key| @unwritten.delete(key) if @unwritten[key].equal?(changes[key]) } }
        written.size == changes.size
      rescue StoreError
        false
      end

      # Another process may have set a token at the same time, so the tokens are read again.
      def draw(keys)
        @tokens.write_multi(keys.to_h { |key| [key, SecureRandom.hex(8)] }, if_absent: true)
        @tokens.read_multi(keys)
      end

      def watch_active_record(model)
        versions = self
        model.after_commit { versions.changed([self.class.table_name]) }
      end

      def watch_sequel(model)
        versions = self
        table = model.table_name.to_s
        model.prepend(Module.new do
          define_method(:after_save) { super().tap { db.after_commit { versions.changed([table]) } } }
          define_method(:after_destroy) { super().tap { db.after_commit { versions.changed([table]) } } }
        end)
      end
    end
  end
end
