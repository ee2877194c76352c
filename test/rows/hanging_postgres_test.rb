# frozen_string_literal: true

require "test_helper"
require "active_record"
require "pg"
require "sequel"
require "timeout"
require "uri"
require_relative "../support/stalling_proxy"

# An interrupted read of a PostgreSQL that hangs ends soon, and no later read gets its connection.
class HangingPostgresTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Author < Base
    has_many :books, class_name: "HangingPostgresTest::Book"
    has_many :letters, class_name: "HangingPostgresTest::Letter"
  end

  class Book < Base; end
  class Letter < Base; end

  class BookResource < Castellan::Resource
    model Book
    attributes :title
  end

  class LetterResource < Castellan::Resource
    model Letter
  end

  class AuthorResource < Castellan::Resource
    model Author
    attributes :name
    has_many :books, :letters
  end

  TABLES = <<~SQL
    CREATE TABLE authors (id serial PRIMARY KEY, name text);
    CREATE TABLE books (id serial PRIMARY KEY, author_id integer, title text);
    CREATE TABLE letters (id serial PRIMARY KEY, author_id integer);
    INSERT INTO authors (name) VALUES ('Ada');
    INSERT INTO books (author_id, title) VALUES (1, 'Notes');
  SQL

  def setup
    needs :postgres
    skip "this pg has no pipelines" unless Castellan::Rows::PostgresDriver::Pipeline.possible?
    url = URI(Castellan::TestServers.postgres_url)
    PG.connect(url.to_s).then { |connection| connection.exec(TABLES) && connection.close }
    @proxy = Castellan::StallingProxy.new(url.port)
    @url = url.to_s.sub(/:#{url.port}\b/, ":#{@proxy.port}") # newer versions of uri drop the user with `port=`
    Base.establish_connection(@url)
    Base.connection # connects now, so that no interrupt meets the first connect
    2.times { read }
  end

  def teardown
    @proxy&.resume
    Base.remove_connection if @proxy
    @proxy&.close
  end

  # A document's first SELECT is sent alone, the others in a pipeline.
  %w[first later].each do |place|
    define_method(:"test_timeout_comes_back_where_neither_the_#{place}_answers_nor_a_cancel_come_through") do
      interrupted { hanging_read(place) }
      @proxy.resume
      assert_read
    end

    define_method(:"test_timeout_comes_back_where_a_cancel_does_not_end_the_#{place}_answers") do
      interrupted { hanging_read(place, new_connections: false) }
      assert_read
    end

    define_method(:"test_two_interrupts_of_the_#{place}_answers_cost_later_reads_nothing") do
      reader = Thread.new do
        Thread.current.report_on_exception = false
        read
        hanging_read(place, new_connections: false)
      end
      Thread.pass until @proxy.stalled? && reader.stop?
      2.times { reader.raise(Interrupt) }
      within_a_minute { assert_raises(Interrupt) { reader.join } }
      Base.connection_pool.reap
      10.times { Thread.new { assert_read }.join }
    end
  end

  def test_the_transaction_of_an_interrupted_read_ends_with_it
    in_a_transaction { Timeout.timeout(0.1) { hanging_read("later", new_connections: false) } }
    assert_read
  end

  def test_nothing_is_written_after_the_connection_of_a_transaction_was_lost
    in_a_transaction do
      assert_raises(Timeout::Error) { Timeout.timeout(0.1) { hanging_read("later", new_connections: false) } }
      Author.create!(name: "outside")
    end
    assert_read
    assert_equal %w[Ada], Author.pluck(:name)
  end

  def test_sequel_discards_the_connection_of_an_interrupted_read
    database = Sequel.connect("#{@url}?max_connections=1")
    books = Class.new(Sequel::Model(database[:books]))
    resource = Class.new(Castellan::Resource) { model(books) && type(:books) && attributes(:title) }
    2.times { resource.render(:all) }
    @proxy.stall(new_connections: false)
    interrupted { resource.render(:all) }
    assert_includes resource.render(:all), '"title":"Notes"'
  ensure
    forget(database)
  end

  def test_sequel_raises_its_error_for_a_connection_that_the_server_closed
    database = Sequel.connect("#{@url}?max_connections=1")
    ended = Castellan::Rows.for(database[:books])
    assert_raises(Sequel::DatabaseDisconnectError) { ended.session { |session| session.rows("SELECT pg_terminate_backend(pg_backend_pid())") } }
    assert_equal 1, database[:books].count
  ensure
    forget(database)
  end

  private

  def read = AuthorResource.render(:all, include: "books,letters")

  def hanging_read(place, **options)
    return @proxy.stall(**options) && read if place == "first"

    ActiveSupport::Notifications.subscribed(->(*) { @proxy.stall(**options) }, "sql.active_record") { read }
  end

  def assert_read = assert_includes(read, '"title":"Notes"')

  def interrupted(&block)
    within_a_minute { assert_raises(Timeout::Error) { Timeout.timeout(0.1, &block) } }
  end

  # The ROLLBACK of ActiveRecord fails here, so it discards the connection.
  def in_a_transaction(&block)
    within_a_minute do
      assert_raises(ActiveRecord::ActiveRecordError, PG::ConnectionBad) do
        Base.transaction(&block)
      end
    end
  end

  # The limit is far above the usual duration and below that of a hanging server.
  def within_a_minute(&block)
    Timeout.timeout(60, Minitest::Assertion, "did not end", &block)
  end
end
