# frozen_string_literal: true

require "test_helper"
require "json"
require "document/library"

# To-one paths on PostgreSQL are joins if that cannot change the result, subqueries otherwise.
class JoinedPathsTest < Minitest::Test
  def setup
    needs :postgres
    library.fill
  end

  def test_a_path_to_a_primary_key_is_a_join
    statement = statement_of(articles.order(:id))
    assert_includes statement, "LEFT JOIN (SELECT \"authors\".\"id\" AS castellan_k"
    assert_equal ["Grace", "Edsger", nil], names(articles.order(:id).limit(3)) {
      library.run("UPDATE articles SET author_id = 99 WHERE id = 3")
    }
  end

  def test_a_path_has_one_join_per_step
    author = library.models::AuthorResource
    body = author.render(library.models::Author.order(:id))
    assert_equal [nil, "Ada", "Ada"], JSON.parse(body)["data"].map { |record| record["attributes"]["mentor_name"] }
    long_path = Class.new(library.models::LongArticleResource) { attribute :mentor, from: "author.mentor.name" }
    sql = statements { assert_equal ["Ada", "Ada", nil], values(long_path.render(articles.order(:id).limit(3)), "mentor") }.first
    assert_equal 2, sql.scan("LEFT JOIN").size
  end

  def test_column_names_in_a_scope_still_work
    scope = articles.where("title LIKE 'Title%' AND id > 1").order("id DESC").limit(2)
    assert_includes statement_of(scope), "LEFT JOIN"
    assert_equal %w[Grace Ada], names(scope)
    joined = articles.joins(:author).where(authors: { name: "Ada" }).order(:id)
    assert_equal %w[Ada Ada], names(joined)
  end

  def test_a_distinct_filter_with_joins_is_sorted_by_a_path
    resource = Class.new(library.models::LongArticleResource) do
      attribute :name, from: "author.name"
      filter(:author) { |all, names| all.joins(:author).where(authors: { name: names }).distinct }
      sort :name
    end
    assert_equal %w[Ada Ada Grace], values(resource.render(filter: { author: %w[Grace Ada] }, sort: "name"), "name").first(3)
  end

  def test_a_distinct_filter_of_sequel_is_sorted_by_a_path
    sequel = Library.sequel(:postgres)
    sequel.fill
    article = sequel.models::Article
    resource = Class.new(sequel.models::LongArticleResource) do
      attribute :name, from: "author.name"
      filter(:author) { |all, names| all.association_join(:author).where(Sequel[:author][:name] => names).distinct }
      sort :name
    end
    filter = { author: %w[Grace Ada] }
    assert_equal %w[Ada Ada Grace Grace Grace], values(resource.render(filter: filter, sort: "name"), "name")
    tagged = article.from(Sequel[:articles].as(:own)).join(:taggings, article_id: Sequel[:own][:id]).select_all(:own).distinct
    assert_equal %w[Grace Ada], values(resource.render(tagged, sort: "-name"), "name")
  end

  def test_rows_of_distinct_on_of_sequel
    sequel = Library.sequel(:postgres)
    sequel.fill
    article = sequel.models::Article
    newest = ->(all) { all.distinct(:author_id).order(:author_id, Sequel.desc(:id)) }
    expected = article.exclude(author_id: nil).order(:id).all.group_by(&:author_id).values.map { |of_author| of_author.last.title }
    resource = Class.new(sequel.models::LongArticleResource) do
      attributes :title
      filter(:newest) { |all, _| newest.call(all.exclude(author_id: nil)) }
      sort :title
    end
    hidden = Class.new(resource) { scope { |all, _viewer| newest.call(all.exclude(author_id: nil)) } }
    assert_operator expected.size, :<, article.exclude(author_id: nil).count
    [{ filter: { newest: ["1"] } }, { filter: { newest: ["1"] }, sort: "title" }].each do |asked|
      assert_equal expected.sort, values(resource.render(**asked), "title").sort
    end
    assert_equal expected.sort, values(hidden.render(sort: "title"), "title")
    assert_equal expected.sort, values(resource.render(newest.call(article.exclude(author_id: nil)), sort: "title"), "title")
    of_model = Class.new(Castellan::Resource) do
      model Class.new(Sequel::Model(newest.call(article.exclude(author_id: nil).naked)))
      type "articles"
      attributes :title
      sort :title
    end
    assert_equal expected.sort, values(of_model.render(sort: "title"), "title")
  end

  def test_unordered_locked_and_from_relations_have_no_join
    from = articles.from(articles.where(id: 1..3), :articles).order(:id)
    [articles.all, articles.where(id: 1..3), articles.order(:id).lock, from].each do |scope|
      library.transaction { refute_includes statement_of(scope), "LEFT JOIN" }
    end
    assert_equal %w[Grace Edsger Ada], names(from)
  end

  def test_a_path_that_may_match_several_rows_is_a_subquery
    model = Class.new(library.models::Base) { self.table_name = "articles" }
    model.has_one :badge, class_name: "#{library.models.name}::Comment", foreign_key: :article_id
    model.define_singleton_method(:name) { "Badged" }
    resource = Class.new(Castellan::Resource) { model(model) && type("articles") && attribute(:badge, from: "badge.body") }
    sql = statements { assert_equal ["Yes", "Well", nil], values(resource.render(model.order(:id).limit(3)), "badge") }.first
    refute_includes sql, "LEFT JOIN"
  end

  def test_unique_indexes_are_read_from_the_database
    adapter = Castellan::Rows.for(articles)
    assert_equal [true, false, false], %i[author comments tags].map { |name| adapter.association(name).indexed? }
    library.run("CREATE INDEX articles_order ON articles (author_id, position)")
    library.run("CREATE UNIQUE INDEX articles_some ON articles (title) WHERE id < 0")
    other = Castellan::Rows::ActiveRecordRows.new(articles)
    assert_equal([true, false, false], %i[author_id position title].map { |column| other.types.indexed?(column) })
    refute other.types.unique?(:title)
  ensure
    library.run("DROP INDEX IF EXISTS articles_order, articles_some")
  end

  private

  def library = Library.active_record(:postgres)
  def articles = library.models::Article

  def names(scope)
    yield if block_given?
    values(library.models::LongArticleResource.render(scope), "author_name")
  end

  def values(body, name) = JSON.parse(body)["data"].map { |record| record["attributes"][name] }

  def statement_of(scope) = statements { library.models::LongArticleResource.render(scope) }.first

  def statements
    found = []
    seen = ->(*, payload) { found << payload[:sql] unless payload[:name] == "SCHEMA" }
    ActiveSupport::Notifications.subscribed(seen, "sql.active_record") { yield }
    found.grep_v(/\A(BEGIN|COMMIT)/)
  end
end
