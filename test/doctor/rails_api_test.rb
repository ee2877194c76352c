# frozen_string_literal: true

require "test_helper"
require_relative "doctor_process"
require_relative "../../bin/support/installer"

# The doctor on an application of `rails new --api`, in production, from the first command to the measurement.
class RailsApiTest < Minitest::Test
  include Castellan::DoctorProcess

  GEMFILE = File.join(ROOT, "test/doctor/rails_api/Gemfile")
  OPTIONS = %w[--api --skip-bundle --skip-git --skip-bootsnap --skip-test --quiet].freeze
  SQLITE = { "DATABASE_URL" => "sqlite3:storage/production.sqlite3" }.freeze # Rails 7.2 names none for production
  HTTPS = ["-H", "X-Forwarded-Proto: https"].freeze
  FILES = {
    "app/models/author.rb" => "class Author < ApplicationRecord\n  has_many :books\nend\n",
    "app/models/book.rb" => "class Book < ApplicationRecord\n  belongs_to :author\nend\n",
    "app/jobs/note_job.rb" => <<~RUBY,
      class NoteJob < ApplicationJob
        self.queue_adapter = :async
        def perform = File.write(Rails.root.join("job-was-run"), "")
      end
    RUBY
    "app/mailers/note_mailer.rb" => <<~RUBY,
      class NoteMailer < ApplicationMailer
        def note = mail(to: "a@example.org", subject: "A note", body: "Hello", content_type: "text/plain")
      end
    RUBY
    "app/sidekiq/note_worker.rb" => <<~RUBY,
      require "sidekiq"
      class NoteWorker
        include Sidekiq::Job
        def perform; end
      end
    RUBY
    "app/controllers/books_controller.rb" => <<~RUBY,
      class BooksController < ApplicationController
        def index
          books = Book.order(:id)
          render json: books.map { |book| { title: book.title, author: book.author.name } }
        end

        def write
          Author.create!(name: "of the request")
          Thread.new { Rails.application.executor.wrap { Author.create!(name: "of a thread") } }.join
          Author.transaction { Author.create!(name: "taken back"); raise ActiveRecord::Rollback }
          NoteJob.perform_later
          NoteJob.set(wait: 1.second).perform_later
          ActiveJob.perform_all_later(NoteJob.new)
          NoteWorker.perform_async
          NoteMailer.note.deliver_now
          NoteMailer.note.deliver_now!
          NoteMailer.note.deliver_later
          render json: Author.order(:id).pluck(:name)
        end

        def explode = raise(ArgumentError, "a mistake of the application")
      end
    RUBY
    "app/controllers/live_controller.rb" => <<~RUBY,
      class LiveController < ApplicationController
        include ActionController::Live

        def index
          Author.create!(name: "of a stream")
          2.times { |n| response.stream.write("part \#{n};") }
        ensure
          response.stream.close
        end
      end
    RUBY
    "config/routes.rb" => <<~RUBY,
      Rails.application.routes.draw do
        get "/books" => "books#index"
        get "/write" => "books#write"
        get "/explode" => "books#explode"
        get "/live" => "live#index"
      end
    RUBY
    "config/initializers/mail.rb" => <<~RUBY,
      Rails.application.config.action_mailer.delivery_method = :smtp
      Rails.application.config.action_mailer.smtp_settings = { address: "127.0.0.1", port: 1 }
    RUBY
    "db/migrate/20240101000000_create_books.rb" => <<~RUBY,
      class CreateBooks < ActiveRecord::Migration[7.2]
        def change
          create_table(:authors) { |t| t.string :name }
          create_table(:books) { |t| t.string(:title); t.references(:author) }
        end
      end
    RUBY
    "db/seeds.rb" => <<~RUBY
      authors = Array.new(3) { |n| Author.create!(name: "Author \#{n}") }
      20.times { |n| Book.create!(title: "Book \#{n}", author: authors[n % 3]) }
    RUBY
  }.freeze

  def test_the_advice_of_the_doctor_leads_from_rails_new_to_a_finding
    with_rails_app do |app|
      assert_refused app.doctor("--get", "/books"), "No database file specified", "DATABASE_URL"
      app.env = SQLITE
      assert_refused app.doctor("--get", "/books", *HTTPS), "answered 500", "RAILS_ENV=production bin/rails db:prepare"
      prepare(app)
      assert_refused app.doctor("--get", "/books"), "-H 'X-Forwarded-Proto: https'"
      assert_found app.doctor("--get", "/books", *HTTPS)
      assert_errors_and_hosts(app)
      assert_not_comparable(app)
    end
  end

  def test_nothing_of_a_request_stays_on_sqlite
    with_rails_app(SQLITE) do |app|
      prepare(app)
      assert_nothing_stays(app)
    end
  end

  def test_nothing_of_a_request_stays_on_postgres
    needs :postgres
    with_rails_app("DATABASE_URL" => Castellan::TestServers.postgres_url) do |app|
      prepare(app)
      assert_nothing_stays(app)
    end
  end

  private

  def with_rails_app(env = {})
    Castellan::Installer.new(out: $stderr).gems([GEMFILE.delete_prefix("#{ROOT}/")])
    with_app({}, gemfile: GEMFILE, env: env) do |app|
      _, errors, status = app.run(RbConfig.ruby, "-S", "bundle", "exec", "rails", "new", "library", *OPTIONS)
      assert_equal 0, status, errors
      app.dir = File.join(app.dir, "library")
      app.write(FILES)
      yield app
    end
  end

  def prepare(app)
    said, errors, status = app.run(RbConfig.ruby, "bin/rails", "db:prepare", RAILS_ENV: "production")
    assert_equal 0, status, said + errors
  end

  def assert_refused(run, *reasons)
    assert_equal 1, run.status, run.out
    reasons.each { |reason| assert_includes run.err, reason }
    refute_includes run.out, "duration"
  end

  def assert_found(run)
    assert_equal 0, run.status, run.err
    assert_match(/\ARails 7\.2[.\d]+ in production, from config\.ru\n/, run.out)
    assert_match(%r{^database: sqlite3 \(\S*storage/production\.sqlite3\), ActiveRecord$}, run.out)
    assert_includes run.out, "held back: jobs of ActiveJob are dropped; mail is not delivered; jobs of Sidekiq are dropped"
    assert_includes run.out, "table rows  authors 3, books 20"
    assert_match(/^  retained    \d+ objects?, /, run.out)
    assert_includes run.out, "   fix     add .preload(:author) where the books are loaded: app/controllers/books_controller.rb:4"
    assert_match(/^   tried   4 → 2 queries, .*; the same bytes$/, run.out)
    refute_includes run.out, "Started GET"
  end

  def assert_errors_and_hosts(app)
    assert_refused app.doctor("--get", "/explode", *HTTPS), "answered 500", "ArgumentError: a mistake of the application",
                   "from app/controllers/books_controller.rb:"
    app.write("config/initializers/hosts.rb" => %(Rails.application.config.hosts << "library.example"\n))
    assert_refused app.doctor("--get", "/books", *HTTPS), "its host check (config.hosts) refuses the host localhost",
                   "use one that it allows: https://app.example/books"
    assert_equal 0, app.doctor("--get", "https://library.example/books").status
  end

  def assert_not_comparable(app)
    app.env = {}
    app.run(RbConfig.ruby, "bin/rails", "db:prepare", RAILS_ENV: "development")
    run = app.doctor("--env", "development", "--get", "/books")
    assert_equal 0, run.status, run.err
    assert_includes run.out, "in development, from config.ru"
    assert_includes run.out, "NOT COMPARABLE"
  end

  def assert_nothing_stays(app)
    run = app.doctor("--get", "/write", "--get", "/live", "--get", "/write", "--bodies", "bodies", *HTTPS)
    assert_equal 0, run.status, run.err
    names = ["Author 0", "Author 1", "Author 2", "of the request", "of a thread"]
    assert_equal [names, names], [1, 3].map { |number| JSON.parse(File.read(File.join(app.dir, "bodies/#{number}.body"))) }
    assert_equal "part 0;part 1;", File.read(File.join(app.dir, "bodies/2.body"))
    refute_path_exists File.join(app.dir, "job-was-run")
    assert_equal "3", app.run(RbConfig.ruby, "bin/rails", "runner", "print Author.count", RAILS_ENV: "production").first.lines.last
  end
end
