# frozen_string_literal: true

require "test_helper"
require_relative "doctor_process"

# The doctor rolls a request's writes back on each connection and reports those that it cannot.
class RolledBackTest < Minitest::Test
  include Castellan::DoctorProcess

  RECORDS = <<~RUBY
    require "active_record"
    class Author < ActiveRecord::Base; end
    class Second < ActiveRecord::Base
      self.abstract_class = true
    end
    class SecondAuthor < Second
      self.table_name = "authors"
    end
    ActiveRecord::Base.establish_connection(ENV.fetch("TEST_DATABASE"))
    ActiveRecord::Base.connection.create_table(:authors) { |t| t.string :name } unless ActiveRecord::Base.connection.table_exists?(:authors)
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/second"
        Second.establish_connection(ENV.fetch("OTHER_DATABASE")) unless Second.connection_specification_name == "Second"
        SecondAuthor.create!(name: "of a pool that the request opened")
      when "/raw"
        require "pg"
        PG.connect(ENV.fetch("TEST_DATABASE")).exec("INSERT INTO authors (name) VALUES ('of a driver')")
      when "/commit"
        Author.create!(name: "kept")
        ActiveRecord::Base.connection.execute("COMMIT")
      else Author.create!(name: "of the request")
      end
      [200, {}, ["ok"]]
    end)
  RUBY
  DATASETS = <<~RUBY
    require "sequel"
    DB = Sequel.connect(ENV.fetch("TEST_DATABASE"))
    DB.create_table?(:authors) { primary_key :id; String :name }
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/thread" then Thread.new { DB[:authors].insert(name: "of a thread") }.join
      when "/commit" then DB[:authors].insert(name: "kept") && DB.run("COMMIT")
      else DB[:authors].insert(name: "of the request")
      end
      [200, {}, ["ok"]]
    end)
  RUBY

  def test_a_pool_that_the_request_opens_is_rolled_back_on_sqlite
    with_app({ "config.ru" => RECORDS }) do |app|
      app.env = { "TEST_DATABASE" => "sqlite3:one.sqlite3", "OTHER_DATABASE" => "sqlite3:two.sqlite3" }
      create(app, "two.sqlite3")
      assert_nothing_changed app.doctor("--get", "/second", "--get", "/second", "--no-memory")
      assert_equal [0, 0], [count(app, "one.sqlite3"), count(app, "two.sqlite3")]
    end
  end

  def test_a_commit_of_the_application_ends_the_examination_on_sqlite
    [RECORDS, DATASETS].each_with_index do |source, index|
      with_app({ "config.ru" => source }) do |app|
        app.env = { "TEST_DATABASE" => index.zero? ? "sqlite3:one.sqlite3" : "sqlite://one.sqlite3" }
        assert_committed app.doctor("--get", "/commit", "--no-memory")
        assert_equal 1, count(app, "one.sqlite3"), "one request, and no further one"
      end
    end
  end

  def test_a_commit_of_the_application_ends_the_examination_on_postgres
    needs :postgres
    [RECORDS, DATASETS].each do |source|
      with_app({ "config.ru" => source }) do |app|
        app.env = { "TEST_DATABASE" => Castellan::TestServers.postgres_url }
        assert_committed app.doctor("--get", "/commit", "--no-memory")
        assert_nothing_changed app.doctor("--get", "/", "--no-memory")
      end
    end
  end

  def test_writes_on_an_unmanaged_connection_are_reported
    needs :postgres
    { RECORDS => "/raw", DATASETS => "/thread" }.each do |source, path|
      with_app({ "config.ru" => source }) do |app|
        app.env = { "TEST_DATABASE" => Castellan::TestServers.postgres_url }
        run = app.doctor("--get", path, "--no-memory")
        assert_equal 0, run.status, run.err
        assert_includes run.out,
                        "not rolled back: what the application writes on connections of its own (PG.connect) or in threads of Sequel"
        assert_match(/tables changed although every request was rolled back: authors: 0 rows before, \d+ after/, run.err)
      end
    end
  end

  private

  def assert_nothing_changed(run)
    assert_equal 0, run.status, run.err
    refute_includes run.err, "tables changed"
  end

  def assert_committed(run)
    assert_equal 1, run.status, run.out
    assert_includes run.err, "the application ended the doctor's transaction"
    assert_includes run.err, "tables changed although every request was rolled back: authors: 0 rows before, 1 after"
  end

  def create(app, file) = database(app, file) { |one| one.execute("CREATE TABLE authors (id integer PRIMARY KEY, name text)") }

  def count(app, file) = database(app, file) { |one| one.get_first_value("SELECT COUNT(*) FROM authors") }

  def database(app, file)
    require "sqlite3"
    one = SQLite3::Database.new(File.join(app.dir, file))
    yield one
  ensure
    one&.close
  end
end
