# frozen_string_literal: true

require "active_record"
require "fileutils"
require "tmpdir"
Castellan::Resource && Castellan::Rows

# Users with roles, groups, employees and tokens, posts with comments, in one database, with models and resources of that
# database in a module of their own.
#
#   ActiveRecordWorld.sqlite::User.count
module ActiveRecordWorld
  # Each test in a transaction that is rolled back, on a database that `models` says.
  module RolledBack
    def setup
      super
      @connection = models::Base.connection
      @connection.begin_transaction(joinable: false)
    end

    def teardown
      @connection&.rollback_transaction
      super
    end
  end

  # For the class that runs a contract on SQLite.
  module OnSqlite
    def models = ActiveRecordWorld.sqlite
  end

  # For the class that runs it on PostgreSQL.
  module OnPostgres
    def setup
      needs :postgres
      super
    end

    def models = ActiveRecordWorld.postgres
  end

  # For a contract with tables of its own: its World is made once for each class that runs it.
  module OwnWorld
    @worlds = {}

    def self.of(test) = @worlds[test.class] ||= test.class::World.of(test.models::Base)

    def world = OwnWorld.of(self)
  end

  class << self
    # @return [Module] with Base, the models, and the resources
    def sqlite
      @sqlite ||= build(:SqliteWorld, { adapter: "sqlite3", database: File.join(directory, "rows.sqlite3") })
    end

    def postgres
      @postgres ||= build(:PostgresWorld, Castellan::TestServers.postgres_url)
    end

    # @return [Class] a model of a database of its own
    def letters
      @letters ||= begin
        base = const_set(:Elsewhere, Class.new(ActiveRecord::Base) { self.abstract_class = true })
        base.establish_connection({ adapter: "sqlite3", database: File.join(directory, "letters.sqlite3") })
        base.connection.create_table(:letters) { |table| table.integer(:user_id) && table.string(:text) }
        const_set(:Letter, Class.new(base) { self.table_name = "letters" })
      end
    end

    private

    # A file and not :memory:, because each thread has a connection of its own.
    def directory
      Dir.mktmpdir("castellan-rows").tap { |path| Minitest.after_run { FileUtils.remove_entry(path) } }
    end

    def build(name, database)
      world = Object.const_set(name, Module.new)
      base = world.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
      base.establish_connection(database)
      tables(base.connection)
      world.module_eval(File.read(File.expand_path("active_record_models.rb", __dir__)),
                        File.expand_path("active_record_models.rb", __dir__), 1)
      world
    end

    def tables(connection)
      ActiveRecord::Schema.verbose = false
      connection.instance_eval(File.read(File.expand_path("active_record_tables.rb", __dir__)),
                               File.expand_path("active_record_tables.rb", __dir__), 1)
    end
  end
end
