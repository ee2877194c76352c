# frozen_string_literal: true

require "test_helper"
require "support/snippets"
require "tmpdir"

# The files of a Rails application that the README shows, in one: the migration runs, schema.rb is loaded twice,
# the migration goes back, and documents are kept while its triggers are there.
class ReadmeRailsTest < Minitest::Test
  SHOWN = Castellan::Snippets.files(File.read(File.join(ROOT, "README.md"))).transform_values { |code| code.sub("[7.2]", "[7.1]") }.freeze
  ROUTES = "config/routes.rb" # test/doctor/rails_quick_start_test.rb has them
  PROGRAM = <<~RUBY
    require "rails"
    require "active_record/railtie"
    require "action_controller/railtie"
    require "rake"
    require "castellan"
    class Reader < Rails::Application
      config.root = Dir.pwd
      config.load_defaults 7.1
      config.eager_load = false
      config.secret_key_base = "a" * 64
      config.logger = Logger.new(IO::NULL)
    end
    ENV["RAILS_ENV"] = "test"
    Rails.application.initialize!
    ActiveRecord::Schema.verbose = ActiveRecord::Migration.verbose = false
    ActiveRecord::Schema.define do
      create_table(:users) { |table| table.string(:name) }
      create_table(:posts) { |table| table.string(:title) && table.references(:user) }
    end
    class User < ActiveRecord::Base; end
    class Post < ActiveRecord::Base
      belongs_to :user
    end
    class PostResource < Castellan::Resource
      model Post
      attributes :title
      attribute :author, from: "user.name"
      cache :exact, expires_in: 3_600
    end
    Post.create!(title: "One", user: User.create!(name: "Ada"))
    def answer = PostResource.document.then { |document| [document.to_s[/"title.*?}/], document.explain[/^kept: .*/]] }
    p answer
    pool = ActiveRecord::Base.connection_pool
    migrations = pool.respond_to?(:migration_context) ? pool.migration_context : ActiveRecord::Base.connection.migration_context
    migrations.migrate
    p answer
    User.update_all(name: "Ada L.")
    p answer
    Rails.application.load_tasks
    Rake::Task["db:schema:dump"].invoke
    2.times do
      Rake::Task["db:schema:load"].tap(&:reenable).invoke
      Post.create!(title: "One", user: User.create!(name: "Ada"))
      p answer
    end
    migrations.down
    p answer
  RUBY

  def test_the_readme_shows_a_migration_an_initializer_and_routes
    assert_equal ["config/initializers/castellan.rb", ROUTES, "db/migrate"], SHOWN.keys.map { |path| path[%r{\Adb/migrate}] || path }.sort
  end

  def test_the_migration_and_the_initializer_keep_documents_on_sqlite
    assert_keeps("sqlite3:library.sqlite3")
  end

  def test_the_migration_and_the_initializer_keep_documents_on_postgres
    needs :postgres
    assert_keeps(Castellan::TestServers.postgres_url)
  end

  private

  def assert_keeps(url)
    needs :redis
    texts, kept = answers(url).transpose
    assert_equal ["Ada", "Ada", "Ada L.", "Ada", "Ada", "Ada"], texts.map { |text| text[/"author":"(.*)"/, 1] }
    unread = kept.map { |reason| reason.include?("cannot be read: add castellan_versions") }
    assert_equal [true, false, false, false, false, true], unread, kept
    assert_includes kept[1], "while no write changes what it is made of"
  end

  def answers(url)
    Dir.mktmpdir do |dir|
      write_files(dir, SHOWN.except(ROUTES))
      env = { "DATABASE_URL" => url, "REDIS_URL" => Castellan::TestServers.redis_url }
      run_ruby("-w", "-e", PROGRAM, chdir: dir, env: env).lines.map { |line| JSON.parse(line) }
    end
  end
end
