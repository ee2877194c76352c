# frozen_string_literal: true

module Castellan
  # Forgets the databases of other tests, because the doctor examines all databases of its process.
  #
  #   forget(database)   # in the teardown of a test that connected to it
  #
  # If the directory of a database was deleted, the outcome of a test would depend on the order of the tests.
  module LeftDatabases
    def after_teardown
      super
      gone = left_databases.select { |path| path.start_with?("/") && !Dir.exist?(File.dirname(path)) }
      flunk("#{name} leaves connections to directories that are gone: #{gone.join(', ')}; call forget(database)") if gone.any?
      cut = databases_cut_off
      cut.each(&:disconnect) # the next test connects again
      flunk("#{name} or the one before ended connections of #{cut.map(&:uri).join(', ')}: a fork must leave with exit!") if cut.any?
    end

    # @param database [Sequel::Database, Class, nil] a Sequel database, or an ActiveRecord class with a
    #   connection
    def forget(database)
      return unless database
      return database.remove_connection unless database.respond_to?(:disconnect)

      database.disconnect
      Sequel::DATABASES.delete(database)
    end

    private

    # Sequel's PostgreSQL databases whose connections the server has closed. ActiveRecord reconnects
    # automatically.
    def databases_cut_off
      return [] unless defined?(Sequel::DATABASES)

      Sequel::DATABASES.select { |database| database.opts[:adapter].to_s == "postgres" && hung_up?(database) }
    end

    def hung_up?(database)
      found = false
      database.pool.all_connections { |connection| found ||= !connection.finished? && ended?(connection.socket_io) }
      found
    end

    def ended?(socket) = ["", nil].include?(socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false))

    def left_databases
      sequel = defined?(Sequel::DATABASES) ? Sequel::DATABASES.map { |database| database.opts[:database] } : []
      pools = defined?(ActiveRecord::Base) ? ActiveRecord::Base.connection_handler.connection_pool_list(:writing) : []
      (sequel + pools.map { |pool| pool.db_config.database }).compact.map(&:to_s).uniq
    end
  end
end

Minitest::Test.include(Castellan::LeftDatabases)
