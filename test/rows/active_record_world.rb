# frozen_string_literal: true

require "active_record"
require "fileutils"
require "tmpdir"
Castellan::Resource && Castellan::Rows

# Sets up users with roles, groups, employees and tokens, and posts with comments, in one database, each with
# models and resources in a module.
#
#   ActiveRecordWorld.sqlite::User.count
module ActiveRecordWorld
  # Runs each test in a transaction of the database that `models` returns, and rolls it back.
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

  # Runs a contract on SQLite.
  module OnSqlite
    def models = ActiveRecordWorld.sqlite
  end

  # Runs a contract on PostgreSQL.
  module OnPostgres
    def setup
      needs :postgres
      super
    end

    def models = ActiveRecordWorld.postgres
  end

  # For a contract with its own tables: makes its World once per including class.
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

    # @return [Class] a model in its own database
    def letters
      @letters ||= begin
        base = const_set(:Elsewhere, Class.new(ActiveRecord::Base) { self.abstract_class = true })
        base.establish_connection({ adapter: "sqlite3", database: File.join(directory, "letters.sqlite3") })
        base.connection.create_table(:letters) { |table| table.integer(:user_id) && table.string(:text) }
        const_set(:Letter, Class.new(base) { self.table_name = "letters" })
      end
    end

    private

    # A file, because each thread opens its own connection and :memory: is one database per connection.
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
