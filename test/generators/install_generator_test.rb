# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# `bin/rails generate castellan:install`, in a fresh Rails application with a process of its own.
class InstallGeneratorTest < Minitest::Test
  BOOT = <<~RUBY
    require "rails"
    require "active_record/railtie"
    require "castellan"
    class LibraryApp < Rails::Application
      config.root = Dir.pwd
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = false
      config.secret_key_base = "a" * 64
      config.logger = Logger.new(nil)
    end
    Rails.application.initialize!
    ActiveRecord::Schema.verbose = ActiveRecord::Migration.verbose = false
    connection = ActiveRecord::Base.connection
    unless connection.table_exists?(:posts)
      connection.create_table(:users) { |t| t.string :name }
      connection.create_table(:posts) { |t| t.string :title; t.integer :user_id }
      connection.create_table(:tags) { |t| t.string :name; t.integer :post_id }
    end
    def generate(options = ["--force"])
      require "rails/generators"
      Rails::Generators.invoke("castellan:install", options, behavior: :invoke, destination_root: Rails.root.to_s)
    end
  RUBY
  CACHED = <<~RUBY
    class PostResource < Castellan::Resource
      model ::Post
      attributes :title
      attribute :author, from: "user.name"
      has_many :tags
      cache :exact
    end
  RUBY
  FILES = {
    "config/database.yml" => %w[test development production].map { |name|
      "#{name}: { adapter: sqlite3, database: library.sqlite3 }\n"
    }.join,
    "app/resources/tag_resource.rb" => "class TagResource < Castellan::Resource\n  model ::Tag\n  attributes :name\nend\n",
    "app/models/user.rb" => "class User < ActiveRecord::Base\nend\n",
    "app/models/tag.rb" => "class Tag < ActiveRecord::Base\nend\n",
    "app/models/post.rb" => "class Post < ActiveRecord::Base\n  belongs_to :user\n  has_many :tags\nend\n"
  }.freeze
  MIGRATE = <<~RUBY
    pool = ActiveRecord::Base.connection_pool
    (pool.respond_to?(:migration_context) ? pool : ActiveRecord::Base.connection).migration_context.migrate
    puts PostResource.document.explain[/^kept: .*/]
  RUBY

  def test_it_writes_an_initializer_that_boots_everywhere_and_the_migration_that_cached_resources_need
    with_app({ "app/resources/post_resource.rb" => CACHED }) do |run, dir|
      run.call("generate")
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :posts, :tags, :users\n"
      assert_includes one(dir, "add_castellan_versions"), "\n  disable_ddl_transaction! # locks one table at a time"
      kept = run.call("Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: " \
                      "Castellan::Versions::ExactVersions.new(ActiveRecord::Base)); #{MIGRATE}")
      assert_includes kept, "while no write changes what it is made of"
      assert_match(/every table of a resource with `cache :exact` has them/, run.call("generate"))
      %w[production development test].each { |name| assert_equal "booted\n", run.call("puts :booted", "RAILS_ENV" => name) }
    end
  end

  def test_a_second_run_keeps_an_initializer_that_was_changed
    with_app do |run, dir|
      run.call("generate")
      write_files(dir, { "config/initializers/castellan.rb" => "# mine\n" })
      assert_match(%r{skip\W.*config/initializers/castellan.rb}, run.call("generate([])"))
      assert_equal "# mine\n", File.read(File.join(dir, "config/initializers/castellan.rb"))
    end
  end

  def test_a_database_without_triggers_gets_no_migration
    with_app({ "app/resources/post_resource.rb" => CACHED }) do |run, dir|
      mysql = "Castellan::Versions::RawConnections.singleton_class.prepend(Module.new { def dialect(_) = super('mysql2') }); "
      assert_match(/versions\W.*there are none for mysql2; use CommitVersions with Castellan.cache.fetch/, run.call("#{mysql}generate"))
      assert_empty Dir.glob(File.join(dir, "db/migrate/*"))
    end
  end

  def test_it_works_where_base_connection_is_disallowed
    with_app({ "app/resources/post_resource.rb" => CACHED }) do |run, dir|
      run.call("ActiveRecord::Base.connection_handler.clear_active_connections!; " \
               "ActiveRecord.try(:permanent_connection_checkout=, :disallowed); generate")
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :posts, :tags, :users\n"
    end
  end

  def test_without_a_cached_resource_there_is_no_migration
    with_app do |run, dir|
      assert_includes run.call("generate"), "no resource declares `cache :exact` yet"
      assert_path_exists File.join(dir, "config/initializers/castellan.rb")
      assert_empty Dir.glob(File.join(dir, "db/migrate/*"))
    end
  end

  def test_a_second_run_adds_missing_tables
    tags = FILES.fetch("app/resources/tag_resource.rb").sub(/^end/, "  cache :exact, by: :id\nend")
    with_app({ "app/resources/tag_resource.rb" => tags }) do |run, dir|
      run.call("generate")
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :tags, by: %i[id]\n"
      write_files(dir, { "app/resources/post_resource.rb" => CACHED })
      run.call("#{MIGRATE}; generate")
      assert_includes one(dir, "add_castellan_versions_of_posts_and_users"), "castellan_versions :posts, :users, by: %i[id]\n"
    end
  end

  def test_a_block_with_a_record_does_not_hide_the_tables_of_the_statements
    cover = CACHED.sub(/^end/, "  attribute(:cover, preloads: :tags) { |post| post.tags.size }\nend")
    with_app({ "app/resources/post_resource.rb" => cover }) do |run, dir|
      assert_match(/not all documents of PostResource are cached: .*PostResource\.document\.explain/, run.call("generate"))
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :posts, :tags, :users\n"
    end
  end

  def test_tables_of_notified_resources_notify
    files = { "app/resources/post_resource.rb" => CACHED.sub("cache :exact", "cache :notified"),
              "app/resources/name_resource.rb" => "class NameResource < Castellan::Resource\n  model ::Name\n  cache :exact\nend\n",
              "app/models/name.rb" => "class Name < ActiveRecord::Base\nend\n" }
    with_app(files) do |run, dir|
      run.call("connection.create_table(:names) unless connection.table_exists?(:names); generate")
      assert_includes one(dir, "add_castellan_versions"),
                      "    castellan_versions :names\n    castellan_versions :posts, :tags, :users, notify: true\n"
    end
  end

  def test_a_resource_whose_scope_needs_a_viewer_is_named
    scoped = CACHED.sub("cache :exact", "scope { |posts, viewer| posts.where(user_id: viewer.id) }\n  cache :exact")
    with_app({ "app/resources/post_resource.rb" => scoped }) do |run, dir|
      assert_includes run.call("generate"), "PostResource raises NoMethodError without a viewer: also add the tables that"
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :posts\n"
      refute_includes one(dir, "add_castellan_versions"), "disable_ddl_transaction!"
    end
  end

  def test_a_wrong_declaration_is_named
    with_app({ "app/resources/post_resource.rb" => CACHED.sub("cache :exact", "filter :titel\n  cache :exact") }) do |run, _dir|
      assert_includes run.call("generate"), "PostResource filter titel: posts has no column titel (did you mean title?)"
    end
  end

  def test_tables_of_the_versions_of_per_viewer_values_are_included_with_their_column
    readings = "connection.create_table(:readings) { |t| t.integer :user_id } unless connection.table_exists?(:readings); " \
               "connection.create_table(:stars) { |t| t.integer :user_id } unless connection.table_exists?(:stars); generate"
    columns = "per_viewer(:read, version: { readings: :user_id }) { |ids, _| ids }\n  " \
              "per_viewer(:star, version: :stars) { |ids, _| ids }\n  cache :exact"
    ["", "scope { |posts, viewer| posts.where(user_id: viewer.id) }\n  "].each do |scope|
      with_app({ "app/resources/post_resource.rb" => CACHED.sub("cache :exact", scope + columns) }) do |run, dir|
        run.call(readings)
        written = one(dir, "add_castellan_versions")
        assert_includes written, "castellan_versions :readings, by: %i[user_id]\n"
        assert_match(scope.empty? ? /_versions :posts, :stars, :tags, :users$/ : /_versions :posts, :stars$/, written)
      end
    end
  end

  def test_a_resource_of_another_database_is_left_out
    databases = %w[test development production].map { |name|
      "#{name}:\n  primary: { adapter: sqlite3, database: library.sqlite3 }\n  events: { adapter: sqlite3, database: events.sqlite3 }\n"
    }.join
    record = "class EventsRecord < ActiveRecord::Base\n  self.abstract_class = true\n  connects_to database: { writing: :events }\nend\n"
    resource = "class EventResource < Castellan::Resource\n  model ::Event\n  attributes :name\n  cache :exact\nend\n"
    table = "Event.connection.create_table(:events) { |t| t.string :name }; "
    with_app({ "config/database.yml" => databases, "app/models/events_record.rb" => record,
               "app/models/event.rb" => "class Event < EventsRecord; end\n", "app/resources/event_resource.rb" => resource,
               "app/resources/post_resource.rb" => CACHED }) do |run, dir|
      assert_includes run.call("#{table}generate"), "left out: EventResource, in another database"
      assert_includes one(dir, "add_castellan_versions"), "castellan_versions :posts, :tags, :users\n"
    end
  end

  private

  def with_app(files = {})
    Dir.mktmpdir do |dir|
      write_files(dir, { **FILES, **files })
      env = { "DATABASE_URL" => nil, "RAILS_ENV" => "test", "CASTELLAN" => nil, "REDIS_URL" => nil, "PROFILE_SECRET" => nil }
      yield ->(code, more = {}) { run_rails(BOOT + code, chdir: dir, env: { **env, **more }) }, dir
    end
  end

  def one(dir, name)
    found = Dir.glob(File.join(dir, "db/migrate/*_#{name}.rb"))
    assert_equal 1, found.size, Dir.children(File.join(dir, "db/migrate")).inspect
    File.read(found.first)
  end
end
