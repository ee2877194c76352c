# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # A short token for the state of what a document depends on; it changes when that changes.
  #
  #   versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)   # or a Sequel::Database
  #   versions.install(%w[users roles])                                       # once, in a migration
  #   token = versions.current([Castellan::Versions::Dependency.new("users"), Castellan::Versions::Dependency.new("roles")])
  #   # … then read the data, on the same database, and keep its bytes under a key with the token in it
  #
  # The token must be read *before* the data: then bytes can be newer than their key, which is harmless, and never older.
  # `nil` means that nothing exact can be said (a trigger is missing, the transaction has itself written): answer uncached.
  #
  # | | sees | does not see |
  # |---|---|---|
  # | {ExactVersions} | every committed change, by whom and by what SQL ever | see its file |
  # | {CommitVersions} | changes through the ORM of processes that share the store | raw SQL, other programs |
  # | {UpdatedAtVersions} | what moves count or max(updated_at) | the rest; no installation |
  module Versions
    # Loaded when named, because each needs a driver.
    autoload :PostgresReader, "castellan/versions/postgres_reader"
    autoload :SQLiteReader, "castellan/versions/sqlite_reader"
    autoload :ActiveRecordSchema, "castellan/versions/active_record_schema"
  end
end

require_relative "versions/dependency"
require_relative "versions/raw_connections"
require_relative "versions/postgres_triggers"
require_relative "versions/sqlite_triggers"
require_relative "versions/exact_versions"
require_relative "versions/updated_at_versions"
require_relative "versions/commit_versions"
