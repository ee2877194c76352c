# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"

# The SQL of a page is kept by its conditions, order and page: each of them must choose its own rows.
class PageStatementsTest < Minitest::Test
  TITLES = %w[b a title c].freeze

  def setup
    @base = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    @base.define_singleton_method(:name) { "PageStatementsTest::Base" }
    @base.establish_connection(adapter: "sqlite3", database: ":memory:")
    @base.connection.create_table(:books) { |table| table.string :title }
    @database = Sequel.sqlite
    @database.create_table(:books) do
      primary_key :id
      String :title
    end
    TITLES.each do |title|
      @base.connection.execute("INSERT INTO books (title) VALUES ('#{title}')")
      @database[:books].insert(title: title)
    end
  end

  def teardown
    @database.disconnect
    Sequel::DATABASES.delete(@database)
    @base.remove_connection
  end

  def test_pages_of_one_relation
    book = Class.new(@base) { self.table_name = "books" }
    book.define_singleton_method(:name) { "PageStatementsTest::Book" }
    assert_pages(book, book.where(Arel.sql("title = title")))
  end

  def test_pages_of_one_dataset
    book = Class.new(Sequel::Model(@database[:books]))
    assert_pages(book, book.where(title: Sequel.lit("title")))
  end

  private

  # @param all [Object] a scope whose condition is true of every row
  def assert_pages(model, all)
    resource = Class.new(Castellan::Resource) do
      model model
      type "books"
      attributes :title
      sort :id, :title, default: "id"
      page size: 2, max_size: 10, count: "total"
    end
    2.times do
      assert_equal [%w[b a], 4], page(resource, model)
      assert_equal [%w[title c], 4], page(resource, model, "page" => { "number" => "2" })
      assert_equal [%w[a b], 4], page(resource, model, "sort" => "title")
      assert_equal [%w[title c], 4], page(resource, model, "sort" => "-title")
      assert_equal [%w[b a title], 4], page(resource, model, "page" => { "size" => "3" })
      assert_equal [%w[title], 1], page(resource, model.where(title: "title"))
      assert_equal [%w[b], 1], page(resource, model.where(title: "b"))
      assert_equal [%w[b a], 4], page(resource, all)
      assert_equal [%w[b a], 3], page(resource, model.limit(3))
    end
  end

  def page(resource, scope, query = {})
    document = JSON.parse(resource.document(scope, query: query).to_json)
    [document["data"].map { |one| one["attributes"]["title"] }, document["meta"]["total"]]
  end
end
