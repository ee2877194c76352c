# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/snippets"
require_relative "doctor_process"
require_relative "../../bin/support/installer"

# The README's quick start in a new Rails application: generator, routes, migration, initializer, curl,
# doctor.
class RailsQuickStartTest < Minitest::Test
  include Castellan::DoctorProcess

  GEMFILE = File.join(ROOT, "test/doctor/rails_api/Gemfile")
  README = Castellan::Snippets.files(File.read(File.join(ROOT, "README.md"))).freeze
  OPTIONS = %w[--api --skip-bundle --skip-git --skip-bootsnap --skip-test --quiet].freeze
  TYPE = "application/vnd.api+json"
  FILES = {
    "app/models/user.rb" => "class User < ApplicationRecord\nend\n",
    "app/models/post.rb" => "class Post < ApplicationRecord\n  belongs_to :user\nend\n",
    "db/migrate/20240101000000_create_posts.rb" => <<~RUBY,
      class CreatePosts < ActiveRecord::Migration[7.2]
        def change
          create_table(:users) { |t| t.string :name }
          create_table(:posts) { |t| t.string(:title); t.references(:user) }
        end
      end
    RUBY
    "db/seeds.rb" => "ada = User.create!(name: 'Ada')\n3.times { |n| Post.create!(title: \"Post \#{n}\", user: ada) }\n"
  }.freeze

  def test_the_readme_leads_from_rails_new_to_a_kept_document_and_the_doctor
    needs :redis
    with_rails_app do |app|
      generate(app)
      app.write(README)
      rails(app, "db:prepare")
      app.env = app.env.merge("REDIS_URL" => Castellan::TestServers.redis_url, "PROFILE_SECRET" => "s" * 32)
      assert_includes rails(app, "runner", "print PostResource.document.explain"), "while no write changes what it is made of"
      assert_served(app)
      assert_examined(app)
    end
  end

  private

  def with_rails_app
    Castellan::Installer.new(out: $stderr).gems([GEMFILE.delete_prefix("#{ROOT}/")])
    env = { "DATABASE_URL" => "sqlite3:storage/production.sqlite3", "SECRET_KEY_BASE_DUMMY" => "1", "RAILS_ENV" => "production",
            "REDIS_URL" => nil, "PROFILE_SECRET" => nil, "CASTELLAN" => nil }
    with_app({}, gemfile: GEMFILE, env: env) do |app|
      _, errors, status = app.run(RbConfig.ruby, "-S", "bundle", "exec", "rails", "new", "library", *OPTIONS)
      assert_equal 0, status, errors
      app.dir = File.join(app.dir, "library")
      app.write(FILES)
      yield app
    end
  end

  # In development, before any other configuration.
  def generate(app)
    rails(app, "db:prepare", DATABASE_URL: nil, RAILS_ENV: "development")
    %w[User Post].each { |name| rails(app, "generate", "castellan:resource", name, DATABASE_URL: nil, RAILS_ENV: "development") }
    resource = File.join(app.dir, "app/resources/post_resource.rb")
    assert_includes File.read(resource), "attributes :title"
    File.write(resource, File.read(resource).sub(/^end\n\z/, "\n  cache :exact\nend\n"))
  end

  def rails(app, *arguments, **env)
    out, errors, status = app.run(RbConfig.ruby, "bin/rails", *arguments, **env)
    assert_equal 0, status, "bin/rails #{arguments.join(" ")}: #{out}#{errors}"
    out
  end

  def assert_served(app)
    serve(app) do |port|
      first = get(port, "/api/posts?include=user")
      assert_equal ["200", TYPE], [first.code, first["content-type"]], first.body
      assert_equal [["Post 0", "Post 1", "Post 2"], %w[Ada]], names(JSON.parse(first.body))
      assert_equal "304", get(port, "/api/posts?include=user", "If-None-Match" => first["etag"]).code
      missing = get(port, "/api/posts/99")
      assert_equal ["404", TYPE, ["errors"]], [missing.code, missing["content-type"], JSON.parse(missing.body).keys]
      assert_profiled(port)
    end
  end

  def names(document)
    [document["data"].map { |post| post["attributes"]["title"] }, document["included"].map { |user| user["attributes"]["name"] }]
  end

  # Only a signed URL opens the page.
  def assert_profiled(port)
    token = Castellan::Profile::Token.new("s" * 32).sign(60)
    assert_equal(%w[404 200], [{}, { "Castellan-Token" => token }].map { |headers| get(port, "/castellan", headers).code })
  end

  def assert_examined(app)
    run = app.doctor("--get", "/api/posts?include=user", "-H", "X-Forwarded-Proto: https")
    assert_equal 0, run.status, run.err
    assert_match(/\ARails 7\.2[.\d]+ in production, from config\.ru\n/, run.out)
    assert_includes run.out, "GET /api/posts?include=user → 200"
  end

  def serve(app)
    env = { "BUNDLE_GEMFILE" => GEMFILE, "RUBYOPT" => nil, **app.env }
    server = Bundler.with_unbundled_env do
      Castellan::TestServers.start(:rails, env: env, chdir: app.dir) do |port|
        [RbConfig.ruby, "bin/rails", "server", "-p", port.to_s, "-b", "127.0.0.1"]
      end
    end
    yield server.port
  ensure
    server&.stop
  end

  def get(port, path, headers = {})
    Net::HTTP.get_response(URI("http://127.0.0.1:#{port}#{path}"), { "X-Forwarded-Proto" => "https", "Accept" => TYPE, **headers })
  end
end
