# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # Computes version tokens, which change when one of the given tables changes.
  #
  #   versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)   # or a Sequel::Database
  #   versions.install(%w[users roles])                                       # once, in a migration
  #   token = versions.current(%w[users roles].map { |table| Castellan::Versions::Dependency.new(table) })
  #   # … then read the data from the same database, and cache it under a key that contains the token
  #
  # Read the token *before* the data. Cached data can then be newer than its key, which is harmless, but never
  # older. If the token is nil, the version is unknown (a trigger is missing, or the current transaction has
  # written): do not cache.
  #
  # | | detects | misses |
  # |---|---|---|
  # | {ExactVersions} | every committed change by any program | changes outside of tables |
  # | {NotifiedVersions} | the same without a query, some milliseconds later | the same |
  # | {CommitVersions} | changes through the ORM in processes that share the store | raw SQL, other programs |
  module Versions
    # Errors of a database that is down, by class name, because either ORM may not be loaded.
    AWAY = %w[ActiveRecord::ConnectionNotEstablished ActiveRecord::ConnectionFailed ActiveRecord::NoDatabaseError
              Sequel::DatabaseConnectionError Sequel::DatabaseDisconnectError Sequel::PoolTimeout
              PG::ConnectionBad PG::UnableToSend PG::ConnectionException PG::AdminShutdown
              PG::CrashShutdown PG::CannotConnectNow PG::InsufficientResources SQLite3::BusyException SQLite3::LockedException].freeze
    private_constant :AWAY

    # @param error [StandardError]
    # @return [Boolean] whether the database is down
    def self.away?(error) = error.class.ancestors.any? { |one| AWAY.include?(one.name) }

    # @param tables [Array<String>] tables without a version
    # @return [String] that they have none, and what to write
    def self.lacking(tables)
      "#{tables.join(", ")} #{tables.one? ? "has" : "have"} no version: #{advice(tables)}"
    end

    # @param tables [Array<String>] tables without a version
    # @return [String] what to write
    def self.advice(tables)
      "#{installing(tables)}; " \
        "a view has no version (name its tables), nor has a table of another database (pass expires_in: without " \
        "depends_on:), one that is UNLOGGED, or one of a subscription; after structure.sql was loaded or all tables were " \
        "truncated, a table has one from its first write on; after pg_restore --disable-triggers, run castellan_versions again"
    end

    # In the words of the ORM that is loaded.
    def self.installing(tables)
      call = if defined?(::ActiveRecord::Base) || !defined?(::Sequel::Database)
               "castellan_versions #{tables.map { |table| table.to_sym.inspect }.join(", ")}"
             else
               "Castellan::Versions::ExactVersions.new(DB).install(%w[#{tables.join(" ")}])"
             end
      "add #{call} to a migration, or correct the name"
    end
    private_class_method :installing

    # Autoloaded, because each needs a driver.
    autoload :PostgresReader, "castellan/versions/postgres_reader"
    autoload :PostgresSnapshot, "castellan/versions/postgres_snapshot"
    autoload :SQLiteReader, "castellan/versions/sqlite_reader"
    autoload :ActiveRecordSchema, "castellan/versions/active_record_schema"
  end
end

require_relative "versions/dependency"
require_relative "versions/own_connection"
require_relative "versions/raw_connections"
require_relative "versions/postgres_triggers"
require_relative "versions/sqlite_triggers"
require_relative "versions/shared_read"
require_relative "versions/exact_versions"
require_relative "versions/notification_listener"
require_relative "versions/notified_versions"
require_relative "versions/commit_versions"
