# frozen_string_literal: true

require "securerandom"

module Castellan
  module Versions
    # Tokens that the ORM changes after each commit, kept in a store that all processes share; for databases without triggers.
    #
    #   versions = CommitVersions.new(Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]))
    #   versions.watch(User, Role)                       # ActiveRecord or Sequel models, at boot
    #   versions.current([Dependency.new("users")])      # => "9f86d081884c7d65"
    #   versions.changed(%w[users])                      # after a bulk or raw change that no model made
    #
    # A change draws a random token instead of counting one up, because a counter that the store has dropped would begin
    # again and name documents that are long stale; a dropped token is drawn anew.
    #
    # Blind spots: what makes no model's callback (update_all, delete_all, insert_all, raw SQL, Sequel's datasets, other
    # programs, cascades of the database), the moment between the commit and the store's answer, and a process that dies or
    # a store that fails right then. So give the layer a `ttl:`. A MemoryStore serves one process only.
    class CommitVersions
      PREFIX = "castellan:version:"
      private_constant :PREFIX

      # @param store [Object] see {Store}
      # @param log [#call, nil] told of a change that the store did not take, and of a store that fails
      def initialize(store, log: nil)
        @store = store
        @log = log || ->(line) { warn(line) }
        @tokens = Store::FailSafe.new(store, log: @log)
        freeze
      end

      # @param dependencies [Array<Dependency>]
      # @return [String, nil] nil when the store fails or keeps nothing
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?

        keys = dependencies.map { |dependency| PREFIX + dependency.table }.uniq
        found = @tokens.read_multi(keys, miss: nil) or return
        found = draw(keys) if found.size < keys.size
        keys.map { |key| found[key] || (return nil) }.join(".")
      end

      # Draws new tokens; call it after the commit. Also where the store failed a moment ago: what is not written is stale.
      # @param tables [Array<String, Symbol>]
      def changed(tables)
        @store.write_multi(tables.to_h { |table| [PREFIX + table.to_s, SecureRandom.hex(8)] })
        nil
      rescue StoreError => error
        @log.call("castellan: #{tables.join(', ')} changed, and cached answers stay until they expire, " \
                  "because the store fails: #{error.message}")
      end

      # Changes a model's table after each commit of one of its records.
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

      # One may win who drew at the same time, so what is there is read again.
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
