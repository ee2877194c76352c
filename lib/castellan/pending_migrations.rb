# frozen_string_literal: true

module Castellan
  # Tells whether ActiveRecord's tables can be read yet.
  #
  #   PendingMigrations.reason   # => "migrations are pending"; nil: resources can be checked now
  #
  # Rails draws its routes in `db:create` and `db:migrate` too. A resource must not be checked there: its columns
  # may come with the next migration, and a model that has looked for its table does not look again.
  module PendingMigrations
    module_function

    # @return [String, nil] why the tables cannot be read yet
    def reason
      pool = pool() or return
      "migrations are pending" if pool.with_connection { |connection| context(pool, connection).needs_migration? }
    rescue ::ActiveRecord::NoDatabaseError
      "there is no database"
    rescue ::ActiveRecord::ActiveRecordError => error
      unreadable(error)
    rescue ::NoMethodError
      nil # these methods of Rails are not public
    end

    # The number changes with a migration of a branch that is merged later, whose version is not the last.
    # @return [String, nil] the version of the last migration that has run, and the number of those that have; nil if they
    #   cannot be read
    def last
      pool = pool() or return
      versions = pool.with_connection { |connection| context(pool, connection).get_all_versions }
      "#{versions.max || 0} of #{versions.size}"
    rescue ::ActiveRecord::ActiveRecordError, ::NoMethodError
      nil
    end

    # @return [Object, nil] the connection pool of the primary database
    def pool
      ::ActiveRecord::Base.connection_pool if defined?(::ActiveRecord::Base)
    rescue ::ActiveRecord::ActiveRecordError
      nil # ActiveRecord is loaded, but not used
    end

    # Rails 7.1 has it in the connection.
    def context(pool, connection) = (pool.respond_to?(:migration_context) ? pool : connection).migration_context

    # A file of a wrong name or time is an error of ActiveRecord, too, whose message begins with empty lines.
    def unreadable(error)
      file = defined?(::ActiveRecord::MigrationError) && error.is_a?(::ActiveRecord::MigrationError)
      "#{file ? "a migration cannot be read" : "the database does not answer"}: #{error.message.strip.lines.first&.chomp}"
    end
    private_class_method :pool, :context, :unreadable
  end
end
