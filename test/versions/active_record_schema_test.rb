# frozen_string_literal: true

require "test_helper"
require "active_record"
require "active_record/fixtures"
require "tmpdir"

# Versions survive a schema's migration, its dump to schema.rb or structure.sql, and the load of that dump.
module ActiveRecordSchemaContract
  def setup
    super
    Castellan::Versions::ActiveRecordSchema.extend_active_record
    @dir = Dir.mktmpdir
    @before = ActiveRecord::Base.remove_connection
    ActiveRecord::Base.establish_connection(configuration)
    ActiveRecord::Migration.verbose = false
    @versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    connection.create_table(:posts) { |t| t.string :title }
    connection.create_table(:users) { |t| t.string :name }
  end

  def teardown
    ActiveRecord::Base.remove_connection
    ActiveRecord::Base.establish_connection(@before) if @before
    ActiveRecord::Base.table_name_prefix = ""
    FileUtils.rm_rf(@dir)
    super
  end

  def test_an_application_with_sequel_alone_is_shown_how_it_installs_triggers
    lacking = "; require 'castellan'; puts Castellan::Versions.lacking(%w[posts]).split(' to a migration').first"
    assert_equal "posts has no version: add Castellan::Versions::ExactVersions.new(DB).install(%w[posts])\n",
                 run_ruby("-e", "require 'sequel'#{lacking}")
    assert_equal "posts has no version: add castellan_versions :posts\n", run_ruby("-e", "require 'active_record'#{lacking}")
  end

  def test_a_migration_installs_versions_and_its_rollback_removes_them
    migration = migration { castellan_versions :posts, :users }
    migration.migrate(:up)
    assert token("posts", "users")
    migration.migrate(:down)
    assert_nil token("posts")
    assert_nil token("users")
    migration { remove_castellan_versions :posts }.migrate(:down)
    assert token("posts")
  end

  def test_schema_rb_contains_the_versions_and_can_be_loaded_repeatedly
    migration { castellan_versions %w[users posts] }.migrate(:up)
    schema = dump
    assert_includes schema, %(\n  castellan_versions "posts", "users"\nend)
    assert_equal %w[posts users], schema.scan(/create_table "(\w+)"/).flatten, "the counters are not dumped"
    refute_match(/create_schema|castellan\./, schema)
    2.times do
      load_schema(schema)
      before = token("posts", "users") or flunk "no version after the schema was loaded"
      connection.execute("INSERT INTO posts (title) VALUES ('a')")
      refute_equal before, token("posts", "users")
    end
    assert_equal schema, dump
  end

  def test_a_schema_without_versions_has_no_line
    refute_includes dump, "castellan"
  end

  def test_many_tables_are_dumped_one_per_line
    names = Array.new(12) { |i| "a_table_with_a_name_#{i.to_s.rjust(2, '0')}" }
    names.each { |name| connection.create_table(name) }
    connection.castellan_versions(*names)
    schema = dump
    assert_includes schema, "  castellan_versions(\n    \"a_table_with_a_name_00\",\n"
    load_schema(schema)
    assert token(*names)
  end

  def test_a_prefix_of_table_names_is_added_to_each_table
    ActiveRecord::Base.table_name_prefix = "shop_"
    connection.create_table(:shop_posts)
    connection.create_table(:shop_users)
    migration = migration { castellan_versions :posts, :users }
    migration.migrate(:up)
    assert token("shop_posts", "shop_users")
    assert_includes dump, %(castellan_versions "posts", "users")
    migration.migrate(:down)
    assert_nil token("shop_users")
  end

  def test_structure_sql_contains_the_versions
    connection.castellan_versions(:posts)
    tasks = ActiveRecord::Tasks::DatabaseTasks
    tasks.root = @dir
    file = File.join(@dir, "structure.sql")
    tasks.structure_dump(database_configuration, file)
    use_an_empty_database
    tasks.structure_load(database_configuration, file)
    connection.execute("INSERT INTO posts (title) VALUES ('a')")
    before = token("posts") or flunk "no version after the structure was loaded and the table written"
    connection.execute("UPDATE posts SET title = 'b'")
    refute_equal before, token("posts")
  ensure
    tasks.root = nil
  end

  def test_a_name_without_a_table_raises
    error = assert_raises(Castellan::ConfigurationError) { connection.castellan_versions("posts; DROP TABLE users") }
    assert_includes error.message, "posts; DROP TABLE users"
  end

  private

  def connection = ActiveRecord::Base.connection
  def token(*tables) = @versions.current(tables.map { |table| Castellan::Versions::Dependency.new(table) })
  def migration(&change) = Class.new(ActiveRecord::Migration::Current) { define_method(:change, &change) }.new
  def database_configuration = ActiveRecord::Base.connection_db_config

  def dump
    StringIO.new.tap { |io| ActiveRecord::SchemaDumper.dump(dump_source, io) }.string
  end

  def dump_source
    ActiveRecord.version >= Gem::Version.new("7.2") ? ActiveRecord::Base.connection_pool : connection
  end

  def load_schema(text)
    File.write(file = File.join(@dir, "schema.rb"), text)
    load(file)
  end
end

class ActiveRecordSchemaOnPostgresTest < Minitest::Test
  include ActiveRecordSchemaContract

  def setup
    needs :postgres
    super
  end

  # Otherwise a migration without a transaction would hold the lock of posts while it waits for users.
  def test_each_table_is_locked_by_itself
    other = ActiveRecord::Base.connection_pool.checkout
    other.execute("BEGIN; INSERT INTO users (name) VALUES ('a')")
    connection.execute("SET lock_timeout = '20ms'")
    assert_raises(ActiveRecord::LockWaitTimeout) { connection.castellan_versions(:posts, :users) }
    other.execute("ROLLBACK")
    assert token("posts")
    assert_nil token("users")
  ensure
    ActiveRecord::Base.connection_pool.checkin(other) if other
  end

  def test_schema_rb_contains_the_columns_that_have_versions_of_their_own
    migration { castellan_versions :posts, by: :id, notify: true }.migrate(:up)
    migration { castellan_versions :users, by: %i[name id] }.migrate(:up)
    schema = dump
    assert_includes schema, <<~RUBY.gsub(/^(?=c)/, "  ")

      castellan_versions "users", by: ["id", "name"]

      castellan_versions "posts", by: ["id"], notify: true
      end
    RUBY
    load_schema(schema)
    one, another = by_id(1), by_id(2)
    refute_equal token("posts"), one
    connection.execute("INSERT INTO posts (id, title) VALUES (1, 'a')")
    refute_equal one, by_id(1)
    assert_equal another, by_id(2)
    assert_equal schema, dump
    connection.disable_referential_integrity { connection.execute("INSERT INTO posts (id, title) VALUES (3, 'a')") }
    refute_equal token("posts"), by_id(3), "its triggers are enabled always again"
    migration { castellan_versions :users, by: :id }.migrate(:down)
    assert_nil token("users")
  end

  def test_documents_are_cached_again_after_fixtures_are_loaded
    connection.castellan_versions(:posts)
    before = token("posts")
    connection.disable_referential_integrity { connection.execute("INSERT INTO posts (title) VALUES ('a')") }
    refute_nil token("posts")
    refute_equal before, token("posts")
  end

  private

  def by_id(id) = @versions.current([Castellan::Versions::Dependency.new("posts", by: "id", value: id)])
  def configuration = Castellan::TestServers.postgres_url
  def use_an_empty_database = ActiveRecord::Base.establish_connection(configuration)
end

class ActiveRecordSchemaOnSQLiteTest < Minitest::Test
  include ActiveRecordSchemaContract

  def test_schema_rb_keeps_the_versions_of_a_table_that_rails_recreated
    connection.castellan_versions(:posts)
    connection.change_column(:posts, :title, :text)
    assert_nil token("posts"), "ActiveRecord copies the table on SQLite, without its triggers"
    assert_includes dump, %(castellan_versions "posts")
  end

  private

  def configuration = { adapter: "sqlite3", database: File.join(@dir, "#{@count = @count.to_i + 1}.sqlite3") }
  def use_an_empty_database = ActiveRecord::Base.establish_connection(configuration)
end
