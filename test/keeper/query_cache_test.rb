# frozen_string_literal: true

require "test_helper"
require "document/library"

# A request that has read rows before another one changes them keeps nothing old under the new version, although
# ActiveRecord's query cache still has the old rows.
module QueryCacheContract
  CHANGE = "UPDATE articles SET title = 'changed' WHERE id = 1"

  def setup
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @store = Castellan::Store::MemoryStore.new
    @keeper = Castellan::Keeper.new(store: @store, versions: @versions)
    @cache = @keeper.application_cache
  end

  def teardown
    @versions&.uninstall(Library::TABLES)
  end

  def test_bytes_of_the_application
    changed_after(-> { titles }) { @cache.fetch("titles", depends_on: article) { titles } }
    assert_includes @cache.fetch("titles", depends_on: article) { flunk "it is kept" }, "changed"
  end

  def test_the_tag_belongs_to_the_bytes_that_are_computed_after_it
    tag = body = nil
    changed_after(-> { titles }) do
      tag = @cache.etag("titles", depends_on: article)
      body = titles
    end
    assert_includes body, "changed"
    assert_equal tag, @cache.etag("titles", depends_on: article)
  end

  def test_a_document_of_records
    assert_fresh(shouting) { article.order(:id) }
  end

  def test_a_document_of_a_relation_with_a_from
    assert_fresh(resource(:FromResource)) { article.from(article.where("id < 4"), :articles).order(:id) }
  end

  def test_a_relation_that_is_loaded_before
    [resource(:LoadedResource), shouting].each do |resource|
      relation = article.order(:id)
      library.fill
      changed_after(-> { relation.load.map(&:title) }) { json(resource, relation) }
      assert_equal json(resource, article.order(:id), keeper: nil), json(resource, article.order(:id))
    end
  end

  def test_a_scope_that_is_loaded_before
    relation = article.order(:id)
    scoped = resource(:LoadedScopeResource) do
      scope { relation }
      attribute(:shout, pure: true) { |record| record.title.upcase }
    end
    changed_after(-> { relation.load }) { json(scoped, :all) }
    assert_includes json(scoped, :all), "CHANGED"
  end

  def test_the_number_of_records
    counted = resource(:CountedResource) { page size: 2, count: true }
    assert_fresh(counted, change: "DELETE FROM articles WHERE id > 4") { article.order(:id) }
  end

  def test_values_of_a_viewer
    comment = library.models::Comment
    personal = resource(:ReadResource) do
      per_viewer(:read, version: :comments) { |ids, _viewer| comment.where(article_id: ids).distinct.pluck(:article_id) }
    end
    assert_fresh(personal, viewer: 7, change: "INSERT INTO comments (id, article_id, body) VALUES (9, 7, 'late')") { article.order(:id) }
  end

  private

  def article = library.models::Article
  def titles = article.order(:id).map(&:title).join(" ")

  # Reads, lets another connection write, and computes, in one request with a query cache.
  def changed_after(read, change: CHANGE)
    library.models::Base.cache do
      read.call
      elsewhere(change)
      yield
    end
  end

  def assert_fresh(resource, viewer: nil, change: CHANGE)
    changed_after(-> { json(resource, yield, viewer, keeper: nil) }, change: change) { json(resource, yield, viewer) }
    assert_equal json(resource, yield, viewer, keeper: nil), json(resource, yield, viewer)
  end

  def shouting = resource(:ShoutResource) { attribute(:shout, pure: true) { |record| record.title.upcase } }

  def json(resource, scope, viewer = nil, keeper: @keeper)
    resource.document(scope, viewer: viewer, keeper: keeper).to_json
  end

  def resource(name, &block)
    library.models.const_get(name)
  rescue NameError
    library.models.const_set(name, Class.new(Castellan::Resource)).tap do |resource|
      model = article
      resource.class_eval do
        model model
        type "articles"
        attributes :title
        cache :exact
      end
      resource.class_eval(&block) if block
    end
  end
end

class QueryCacheOnSQLiteTest < Minitest::Test
  include QueryCacheContract

  def library = Library.active_record(:sqlite)

  def elsewhere(sql)
    database = SQLite3::Database.new(library.models::Base.connection_db_config.database)
    database.busy_timeout = 5000
    database.execute(sql)
  ensure
    database&.close
  end
end

class QueryCacheOnPostgresTest < Minitest::Test
  include QueryCacheContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)

  def elsewhere(sql)
    connection = PG.connect(library.url)
    connection.exec(sql)
  ensure
    connection&.close
  end
end
