# frozen_string_literal: true

require "test_helper"
require "json"
require "sequel"
require "sqlite3"
require "tmpdir"
require "active_record"

# A foreign key without its record is written as linkage, but as null if the related record is included.
# Holds for relations, for given records (association loaded or not), and for types that are read from models.
class DanglingKeysTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Author < Base; end
  class Tag < Base; end

  class Book < Base
    belongs_to :author, optional: true
    belongs_to :subject, polymorphic: true, optional: true
  end

  TABLES = <<~SQL
    CREATE TABLE authors (id integer PRIMARY KEY, name varchar(40));
    CREATE TABLE tags (id integer PRIMARY KEY);
    CREATE TABLE books (id integer PRIMARY KEY, author_id integer, subject_type varchar(80), subject_id integer, title varchar(40));
    INSERT INTO authors VALUES (1, 'Ada');
    INSERT INTO books VALUES (1, 1, 'DanglingKeysTest::Author', 1, 'Notes'), (2, 77, 'DanglingKeysTest::Author', 77, 'Lost'),
                             (3, NULL, NULL, NULL, 'Free');
  SQL

  class AuthorResource < Castellan::Resource
    model Author
    attributes :name
  end

  class TagResource < Castellan::Resource
    model Tag
  end

  class BookResource < Castellan::Resource
    model Book
    belongs_to :author
    belongs_to :subject, resource: [AuthorResource, TagResource]
  end

  class BlockBookResource < Castellan::Resource
    model Book
    type :books
    attribute(:shout) { |book| book.title.upcase }
    belongs_to :author
  end

  class BlockAuthorResource < Castellan::Resource
    model Author
    type :authors
    attribute(:shout) { |author| author.name.upcase }
  end

  class BookOfBlockAuthorResource < Castellan::Resource
    model Book
    type :books
    belongs_to :author, resource: BlockAuthorResource
  end

  def self.directory = @directory ||= Dir.mktmpdir.tap { |path| Minitest.after_run { FileUtils.rm_rf(path) } }

  def setup
    path = File.join(self.class.directory, "books.sqlite3")
    SQLite3::Database.new(path) { |database| database.execute_batch(TABLES) } unless File.exist?(path)
    Base.establish_connection(adapter: "sqlite3", database: path)
  end

  WAYS = {
    "relation" => -> { Book.order(:id) }, "records" => -> { Book.order(:id).to_a },
    "records_that_loaded_it" => -> { Book.order(:id).preload(:author).to_a }
  }.freeze

  WAYS.each do |name, books|
    define_method(:"test_the_key_is_linkage_of_a_#{name}_until_it_is_included") do
      [BookResource, BlockBookResource, BookOfBlockAuthorResource].each do |resource|
        assert_equal ["1", "77", nil], authors(resource, books.call), resource
        assert_equal ["1", nil, nil], authors(resource, books.call, include: "author"), resource
      end
    end
  end

  def test_a_dangling_key_of_one_record
    assert_equal ["77"], authors(BookResource, Book.where(id: 2))
    assert_equal [nil], authors(BookResource, Book.where(id: 2), include: "author")
  end

  def test_a_dangling_key_of_a_polymorphic_relationship
    [Book.order(:id), Book.order(:id).to_a, Book.order(:id).preload(:subject).to_a].each do |books|
      assert_equal ["1", "77", nil], linked(BookResource, books, "subject")
    end
    assert_equal ["1", nil, nil], linked(BookResource, Book.order(:id), "subject", include: "subject")
    assert_equal ["1", nil, nil], linked(BookResource, Book.order(:id).to_a, "subject", include: "subject")
  end

  def test_verify_finds_no_difference
    [nil, "author"].each do |include|
      assert_empty Castellan.verify { BookResource.render(Book.order(:id), **{ include: include }.compact) }.differences
    end
  end

  def test_dangling_keys_on_postgresql_and_with_sequel
    needs :postgres
    database = Sequel.connect(Castellan::TestServers.postgres_url)
    TABLES.split(";").each { |sql| database.run(sql) unless sql.strip.empty? }
    authors = Class.new(Sequel::Model(database[:authors]))
    books = Class.new(Sequel::Model(database[:books])) { many_to_one :author, class: authors, key: :author_id }
    shown = Class.new(Castellan::Resource) { model(authors) && type(:authors) && attributes(:name) }
    resource = Class.new(Castellan::Resource) { model(books) && type(:books) && belongs_to(:author, resource: shown) }
    [books.order(:id), books.order(:id).all, books.order(:id).eager(:author).all].each do |given|
      assert_equal ["1", "77", nil], authors(resource, given)
      assert_equal ["1", nil, nil], authors(resource, given, include: "author")
    end
  ensure
    forget(database)
  end

  private

  def authors(resource, given, **options) = linked(resource, given, "author", **options)

  def linked(resource, given, name, **options)
    JSON.parse(resource.render(given, **options))["data"].map { |book| book.dig("relationships", name, "data", "id") }
  end
end
