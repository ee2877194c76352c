# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require "document/library"

# Filters through a to-many association count a record that matches twice as one.
module FilterContract
  def setup
    library.fill
    library.run("INSERT INTO taggings (id, article_id, tag_id) VALUES (10, 2, 1), (11, 2, 2), (12, 3, 2), (13, 4, 2)")
  end

  def test_pages_and_count_with_two_matching_tags
    # 1, 2 and 3 have both tags, 4 has one
    assert_equal [%w[1 2], 4], page(1)
    assert_equal [%w[3 4], 4], page(2)
    assert_equal [[], 4], page(3)
  end

  def test_a_filter_narrows_the_scope_of_the_caller
    seen = articles.render(library.models::Article.where(position: [8, 6, 3]), query: { filter: { tag: "ruby,sql" } })
    assert_equal(%w[2 4], JSON.parse(seen)["data"].map { |one| one["id"] })
  end

  def test_one_record_is_found_through_the_same_filter
    assert_equal "2", JSON.parse(articles.render(id: 2, filter: { tag: %w[ruby sql] }))["data"]["id"]
    assert_equal '{"data":null}', articles.render(id: 7, filter: { tag: "sql" })
  end

  def test_models_and_rows_have_the_same_count
    loud = Class.new(articles) { attribute(:shout) { |article| article.title.upcase } }
    assert_equal [%w[1 2], 4], page(1, loud)
    assert_equal [%w[3 4], 4], page(2, loud)
  end

  # Requests of one query string share their values.
  def test_a_filter_block_may_change_its_values
    model = library.models::Article
    resource = Class.new(articles) do
      filter(:title) do |scope, titles|
        titles.each { |title| title.prepend("Title ") }
        model.respond_to?(:dataset) ? scope.where(Sequel[:articles][:title] => titles) : scope.where(title: titles)
      end
    end
    app = Castellan.app { resource resource }
    counts = Array.new(2) do
      body = +""
      app.call(Rack::MockRequest.env_for("/articles?filter[title]=1,5")).last.each { |part| body << part }
      JSON.parse(body)["meta"]["total"]
    end
    assert_equal [2, 2], counts
  end

  private

  def page(number, resource = articles)
    document = JSON.parse(resource.render(query: { filter: { tag: "ruby,sql" }, page: { number: number, size: 2 } }))
    [document["data"].map { |one| one["id"] }, document["meta"]["total"]]
  end

  def articles
    joined = method(:joined)
    model = library.models::Article
    @articles ||= Class.new(Castellan::Resource) do
      model model
      type "articles"
      attributes :title
      filter(:tag) { |scope, names| joined.call(scope, names) }
      sort :title, default: "title"
      page size: 5, count: true
    end
  end
end

class FilterOnActiveRecordTest < Minitest::Test
  include FilterContract

  def library = Library.active_record(:sqlite)
  def joined(articles, names) = articles.joins(:tags).where(tags: { name: names })
end

class FilterOnActiveRecordAndPostgresTest < Minitest::Test
  include FilterContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
  def joined(articles, names) = articles.joins(:tags).where(tags: { name: names })
end

class FilterOnSequelTest < Minitest::Test
  include FilterContract

  def library = Library.sequel(:sqlite)

  def joined(articles, names)
    articles.join(:taggings, article_id: Sequel[:articles][:id]).join(:tags, id: Sequel[:taggings][:tag_id])
            .where(Sequel[:tags][:name] => names)
  end
end
