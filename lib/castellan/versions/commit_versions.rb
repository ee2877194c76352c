# frozen_string_literal: true

require "securerandom"

module Castellan
  module Versions
    # Changes version tokens in a shared store by ORM callbacks, for databases without triggers.
    #
    #   versions = CommitVersions.new(Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]))
    #   versions.watch(User, Role)                       # ActiveRecord or Sequel models, at boot; Rails: in `to_prepare`
    #   versions.current([Dependency.new("users")])      # => "9f86d081884c7d65"
    #   versions.changed(%w[users])                      # after a bulk or raw change, which skips callbacks
    #
    # Tokens are random numbers, not counters, because a counter that the store evicted would start again and
    # match stale documents.
    #
    # Misses changes without callbacks (update_all, delete_all, insert_all, update_column, increment!, delete,
    # counter caches, join tables of has_and_belongs_to_many, raw SQL, Sequel datasets, other programs, database
    # cascades), changes between the commit and the write to the store, and changes of a process that dies in
    # between. So set `expires_in:`. If the write to the store fails, this process has no token for the table until
    # the store accepts a new one; other processes do not notice. Nor does anyone if the store goes back to older
    # tokens, such as a Redis that restarts with an older RDB file. A MemoryStore works only with a single process.
    class CommitVersions
      PREFIX = "castellan:version:"
      private_constant :PREFIX

      # @param store [Object] see {Store.for}
      # @param log [#call, nil] receives a line if the store fails; by default printed to standard error
      def initialize(store, log: nil)
        @store = Store.for(store)
        @log = log || ->(line) { warn(line) }
        @tokens = Store::FailSafe.new(@store, log: @log)
        @unwritten = {} # key => the last change whose token is not yet in the store
        @watched = {} # connections of the watched models, by their name or Sequel::Database
        @lock = Mutex.new
        freeze
      end

      # @param dependencies [Array<Dependency>]
      # @return [String, nil] nil if the store fails or stores nothing, and in a transaction: its reads may be
      #   rolled back, or be as old as its first query
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?
        return if @watched.values.any?(&:transaction?)

        keys = dependencies.map { |dependency| PREFIX + dependency.table }.uniq
        found = @tokens.read_multi(keys, miss: nil) or return
        late = @unwritten.empty? ? @unwritten : @lock.synchronize { @unwritten.slice(*keys) }
        return unless late.empty? || write(late)

        found = draw(keys) if found.size < keys.size || late.any?
        tokens = keys.map { |key| found[key] || (return nil) }
        [*tokens, *@watched.values.map(&:address)].join(".")
      end

      # @return [String] those of the databases of the watched models, see {ExactVersions#address}
      def address = @watched.values.map(&:address).join

      # Sets new tokens; call it after the commit. Does not use {Store::FailSafe}, because a skipped write
      # would leave stale documents.
      # @param tables [Array<String, Symbol>]
      def changed(tables)
        changes = tables.to_h { |table| [PREFIX + table.to_s, Object.new] }
        known = @lock.synchronize { @unwritten.any?.tap { @unwritten.merge!(changes) } }
        return if write(changes) || known

        @log.call("castellan: #{tables.join(', ')} changed, and cached answers stay until they expire, because the store fails")
        nil
      end

      # Adds callbacks that change the version of a model's table after each commit of a record.
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

      # @param changes [Hash{String => Object}] a newer change by another thread is not removed
      # @return [Boolean] whether the store accepted all new tokens
      def write(changes)
        written = @store.write_multi(changes.transform_values { SecureRandom.hex(8) })
        @lock.synchronize { written.each { |key| @unwritten.delete(key) if @unwritten[key].equal?(changes[key]) } }
        written.size == changes.size
      rescue StoreError
        false
      end

      # Reads the tokens again, because another process may have set one at the same time.
      def draw(keys)
        @tokens.write_multi(keys.to_h { |key| [key, SecureRandom.hex(8)] }, if_absent: true)
        @tokens.read_multi(keys)
      end

      def watch_active_record(model)
        versions = self
        @lock.synchronize { @watched[model.connection_specification_name] ||= RawConnections.for(model) }
        model.set_callback(:commit, :after) { versions.changed([self.class.table_name]) } # before the model's own
      end

      def watch_sequel(model)
        versions = self
        @lock.synchronize { @watched[model.db] ||= RawConnections.for(model.db) }
        model.prepend(Module.new do
          changed = ->(record, server) { record.db.after_commit(server: server) { versions.changed(Dependency.tables_of(record.model)) } }
          define_method(:after_save) { super().tap { changed.call(self, this_server) } }
          define_method(:after_destroy) { super().tap { changed.call(self, this_server) } }
        end)
      end
    end
  end
end
