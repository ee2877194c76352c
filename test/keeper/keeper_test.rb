# frozen_string_literal: true

require "test_helper"
require "document/library"

# Kept documents are the bytes that are written anew, whatever was written to the database in between, on both ORMs and databases.
module KeeperContract
  # A store that counts what is written to it.
  class CountingStore
    attr_reader :written

    def initialize
      @store = Castellan::Store::MemoryStore.new
      @written = []
    end

    def write_multi(entries, **options)
      @written.concat(entries.keys.grep_v(/:lease\z/))
      @store.write_multi(entries, **options)
    end

    def read_multi(keys) = @store.read_multi(keys)
    def delete_multi(keys) = @store.delete_multi(keys)
    def increment(...) = @store.increment(...)
    def compare_and_delete(key, token) = @store.compare_and_delete(key, token)
    def supports?(feature) = @store.supports?(feature)
  end

  # A store that is down.
  class FailingStore
    def read_multi(_) = raise(Castellan::StoreError, "down")
    def write_multi(*, **) = raise(Castellan::StoreError, "down")
    def delete_multi(_) = raise(Castellan::StoreError, "down")
    def increment(*, **) = raise(Castellan::StoreError, "down")
    def compare_and_delete(*) = raise(Castellan::StoreError, "down")
    def supports?(_) = false
  end

  # A store whose bytes are cut short, or anything.
  class GarblingStore < CountingStore
    def read_multi(keys) = super.transform_values { |bytes| bytes.byteslice(0, bytes.bytesize - 3) }
  end

  WRITES = {
    "INSERT INTO articles (id, author_id, title, body, position) VALUES (8, 1, 'New', 'B', 0)" => "an article is added",
    "UPDATE articles SET title = 'Other' WHERE id = 7" => "an article changes",
    "DELETE FROM articles WHERE id = 7" => "an article goes", "UPDATE authors SET name = 'Barbara' WHERE id = 2" => "an author changes",
    "INSERT INTO comments (id, article_id, body) VALUES (9, 7, 'Hm')" => "a comment is added", "DELETE FROM taggings" => "join rows go",
    "UPDATE tags SET name = 'rails'" => "a tag changes"
  }.freeze

  def setup
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @store = CountingStore.new
    @keeper = keeper(@store)
  end

  def teardown
    @versions&.uninstall(Library::TABLES)
  end

  # PostgreSQL compares a date with 'today' anew each day, whatever the scope was compared with before.
  def test_a_text_that_may_be_the_current_time_is_not_kept
    sqlite = [Library.active_record(:sqlite), Library.sequel(:sqlite)].include?(library)
    kept = %w[2020-01-01 today Tomorrow 2020-01-01].map { |day| dated(day).rendering.kept? }
    assert_equal [true, sqlite, sqlite, true], kept
  end

  def test_a_document_is_written_once_and_then_read_from_the_store
    first = document.to_json
    assert_equal 1, @store.written.size
    second = document
    sent = library.queries { assert_equal first, second.to_json }
    assert_empty sent
    assert_equal 1, @store.written.size
    assert_equal first, document(keeper: nil).to_json
  end

  def test_a_304_reads_nothing_but_the_version
    etag = document.etag
    assert_empty(library.queries { assert_equal etag, document.etag })
    assert_empty @store.written
  end

  WRITES.each do |sql, what|
    define_method("test_a_document_is_stale_when_#{what.tr(" ", "_")}") do
      before = document(include: "author,tags,comments")
      before = [before.to_json, before.etag]
      library.run(sql)
      after = document(include: "author,tags,comments")
      refute_equal before, [after.to_json, after.etag]
      assert_equal document(include: "author,tags,comments", keeper: nil).to_json, after.to_json
    end
  end

  def test_documents_that_differ_in_anything_have_different_keys
    models = library.models
    asked = [{}, { sort: "title" }, { sort: "-title" }, { page: { number: 2 } }, { page: { size: 2 } }, { include: "author" },
             { fields: { articles: "title" } },
             { id: 1 }, { id: 2 }, { meta: { a: 1 } }, { links: { self: "/" } }, { format: :nested }, { filter: { title: "Title 1" } },
             { representation: :summary }, { filter: { title: "Title 2" } }]
    expected = asked.map { |options| models::KeptArticleResource.render(keeper: nil, **options) }
    2.times { assert_equal expected, asked.map { |options| models::KeptArticleResource.render(keeper: @keeper, **options) } }
    assert_equal asked.size, asked.map { |options| models::KeptArticleResource.document(keeper: @keeper, **options).etag }.uniq.size
    assert_equal asked.size, @store.written.size
  end

  def test_scopes_have_different_keys
    models = library.models
    scopes = [1, 2, 3].map { |author| models::Article.where(author_id: author) }
    expected = scopes.map { |scope| models::KeptArticleResource.render(scope, keeper: nil) }
    2.times { assert_equal expected, scopes.map { |scope| models::KeptArticleResource.render(scope, keeper: @keeper) } }
    assert_equal 3, expected.uniq.size
  end

  def test_a_failing_store_is_a_miss
    lines = []
    failing = Castellan::Keeper.new(store: FailingStore.new, versions: @versions, log: ->(line) { lines << line })
    assert_equal document(keeper: nil).to_json, document(keeper: failing).to_json
    assert_includes lines.first, "down"
  end

  def test_an_object_that_is_no_string_in_the_store_is_a_miss
    fresh = document(keeper: nil).to_json
    [1, Object.new, {}, []].each do |object|
      store = @store.dup
      store.define_singleton_method(:read_multi) { |keys| keys.to_h { |key| [key, object] } }
      assert_equal fresh, document(keeper: keeper(store)).to_json, object.class.name
    end
  end

  def test_bytes_that_are_not_ours_are_a_miss
    garbled = keeper(GarblingStore.new)
    2.times { assert_equal document(keeper: nil, include: "tags").to_json, document(keeper: garbled, include: "tags").to_json }
  end

  def test_where_a_trigger_is_missing_nothing_is_kept
    @versions.uninstall(%w[authors])
    before = document.etag
    assert_equal document(keeper: nil).to_json, document.to_json
    library.run("UPDATE authors SET name = name || '.'")
    refute_equal before, document.etag
    assert_empty @store.written
  end

  def test_a_block_that_takes_the_record_is_never_kept
    seen = resource(:BlockResource, models::KeptArticleResource) { attribute(:seen) { |record| record.title } }
    assert_equal "Title 7", JSON.parse(seen.render(keeper: @keeper)).dig("data", 0, "attributes", "seen")
    assert_nil seen.document(keeper: @keeper).rendering.tables
    assert_empty @store.written
  end

  def test_a_resource_without_a_name_is_never_kept
    nameless = Class.new(models::KeptArticleResource)
    nameless.render(keeper: @keeper)
    assert_empty @store.written
  end

  def test_a_statement_that_asks_for_the_time_is_never_kept
    scope = models::Article.where(Sequel.lit("CURRENT_TIMESTAMP IS NOT NULL")) if models::Article.is_a?(Class) && models::Article < Sequel::Model
    scope ||= models::Article.where("CURRENT_TIMESTAMP IS NOT NULL")
    models::KeptArticleResource.render(scope, keeper: @keeper)
    assert_empty @store.written
  end

  def test_a_revision_never_serves_the_bytes_of_another
    first = document.to_json
    other = Castellan::Keeper.new(store: @store, versions: @versions, revision: "2")
    assert_equal first, models::KeptArticleResource.render(keeper: other)
    assert_equal 2, @store.written.size
  end

  def test_castellan_off_passes_by
    with_env("CASTELLAN" => "off") do
      assert_equal document(keeper: nil).to_json, document.to_json
    end
    assert_empty @store.written
  end

  def test_a_resource_that_declares_no_cache_is_never_kept
    models::ArticleResource.render(keeper: @keeper)
    assert_empty @store.written
  end

  def test_explain_prints_whether_the_versions_are_installed
    assert_includes document.explain, "kept: the document, while"
    assert_includes document(id: 1).explain, "kept: the document, while"
    @versions.uninstall(%w[authors])
    assert_includes document.explain, "kept: not now: the version of authors cannot be read: add castellan_versions :authors to a migration"
    assert_includes document(keeper: nil).explain, "kept: not now: Castellan.keep was not called"
    Castellan.stub(:keeper, @keeper) do
      assert_includes document(keeper: nil).explain, "kept: not now: each request reads the linkage of a relationship from the rows"
    end
    Castellan.verify { assert_includes document.explain, "kept: not now: it is written anew inside Castellan.verify" }
    refute_includes models::ArticleResource.document(keeper: @keeper).explain, "kept: "
  end

  def test_explain_names_a_table_of_values_that_has_no_version
    personal = lambda do |name, version|
      library.models.const_set(name, Class.new(models::KeptArticleResource) { per_viewer(:read, version: version) { [] } })
    end
    unversioned = personal.call("UnversionedResource#{object_id}", :castellan_versions).document(keeper: @keeper).explain
    assert_includes unversioned, "because the version of castellan_versions cannot be read: add castellan_versions :castellan_versions"
    refute_includes personal.call("SpeltResource#{object_id}", :comments).document(keeper: @keeper).explain, "in each request"
  end

  def test_explain_prints_why_nothing_is_kept_with_any_version
    with_env("CASTELLAN" => "off") { assert_includes document.explain, "kept: not now: CASTELLAN=off" }
    nameless = Class.new(models::KeptArticleResource)
    assert_includes nameless.document(keeper: @keeper).explain, "kept: not now: a class without a name"
    opaque = Class.new(models::KeptArticleResource) { attribute(:size) { |record| record.title.size } }
    assert_match(/tables: not known\nkept: never, because:\n.*:size: its block gets/, opaque.document(keeper: @keeper).explain)
  end

  def test_a_scope_with_an_offset_is_the_same_document
    plain = resource(:UnpagedResource, models::TagResource) { cache :exact }
    tags = models::Tag.order(:id).limit(1).offset(1)
    2.times { assert_equal plain.render(tags, keeper: nil), plain.render(tags, keeper: @keeper) }
  end

  # --- the viewer's own

  def test_one_kept_document_serves_each_viewer_their_own
    asked = []
    viewers = [[7], [6, 5], []].map { |read|
      ->(ids) {
        asked << ids
        read
      }
    }
    found = viewers.map { |viewer| JSON.parse(models::PersonalArticleResource.render(keeper: @keeper, viewer: viewer)) }
    assert_equal([[true, false, false], [false, true, true], [false, false, false]], found.map { |document|
      document["data"].map { |article|
        article["attributes"]["read"]
      }
    })
    assert_equal 1, @store.written.size
    assert_equal [[7, 6, 5]] * 3, asked
    refute_predicate models::PersonalArticleResource.document(keeper: @keeper, viewer: viewers[0]).public!, :public?
  end

  def test_the_tag_of_a_document_with_holes_is_of_its_version_and_of_the_values
    read = []
    tag = -> { models::PersonalArticleResource.document(keeper: @keeper, viewer: ->(_) { read }).etag }
    tags = [[7], [6, 5], []].map { |ids| (read = ids) && tag.call }
    assert_equal 3, tags.uniq.size
    assert_equal tags.last, tag.call
    library.run("UPDATE articles SET title = 'Other' WHERE id = 7")
    refute_equal tags.last, tag.call
  end

  # A viewer with the ids that were read, and a version of them.
  Reader = Struct.new(:id, :read, :version) do
    def call(ids) = ids & read
  end

  def test_a_declared_version_replaces_the_values
    ada = Reader.new(1, [7], 1)
    tag = ->(viewer) { models::VersionedArticleResource.document(keeper: @keeper, viewer: viewer).etag }
    before = tag.call(ada)
    ada.read = nil # a batch would fail
    assert_empty(library.queries { assert_equal before, tag.call(ada) })
    ada.version = 2
    refute_equal before, tag.call(ada)
    library.run("UPDATE articles SET title = 'Other' WHERE id = 7")
    ada.version = 1
    refute_equal before, tag.call(ada)
  end

  def test_viewers_with_one_version_have_tags_of_their_own
    viewers = [Reader.new(1, [7], 1), Reader.new(2, [], 1), Reader.new("1", [7], 1)]
    tags = viewers.map { |viewer| models::VersionedArticleResource.document(keeper: @keeper, viewer: viewer).etag }
    assert_equal 3, tags.uniq.size
  end

  def test_the_values_of_a_viewer_without_an_id_are_compared
    ada, alan = [[7], []].map { |read| Reader.new(nil, read, 1) }
    tag = ->(viewer) { models::VersionedArticleResource.document(keeper: @keeper, viewer: viewer).etag }
    refute_equal tag.call(ada), tag.call(alan)
    assert_equal tag.call(ada), tag.call(Reader.new(nil, [7], 2))
  end

  def test_a_version_without_a_distinct_text_raises
    error = assert_raises(Castellan::ConfigurationError) do
      models::VersionedArticleResource.document(keeper: @keeper, viewer: Reader.new(1, [], Object.new)).etag
    end
    assert_match(/version: of per_viewer :read must return strings.*Object.*library_resources\.rb:\d+/, error.message)
  end

  def test_each_viewer_of_a_narrowed_scope_has_bytes_of_their_own
    found = [1, 2, 1, 2].map do |author|
      scope = models::Article.where(author_id: author)
      document = models::KeptArticleResource.document(scope, keeper: @keeper)
      assert_equal models::KeptArticleResource.render(scope, keeper: nil), document.to_json
      [document.etag, document.to_json]
    end
    assert_equal found.first(2), found.last(2)
    assert_equal 2, found.flatten.uniq.size / 2
    assert_equal 2, @store.written.size
  end

  def test_a_viewers_values_may_be_a_hash
    viewer = ->(_ids) { { 7 => "today", 6 => nil } }
    document = JSON.parse(models::PersonalArticleResource.render(keeper: @keeper, viewer: viewer))
    assert_equal(["today", nil, nil], document["data"].map { |article| article["attributes"]["read"] })
  end

  def test_per_viewer_values_of_another_kind_raise_an_error
    error = assert_raises(Castellan::ConfigurationError) { models::PersonalArticleResource.render(keeper: @keeper, viewer: ->(_) { true }) }
    assert_match(/per_viewer :read must return ids or a Hash.*TrueClass.*library_resources\.rb:\d+/, error.message)
    records = ->(_) { [Struct.new(:reload).new] }
    error = assert_raises(Castellan::ConfigurationError) { models::PersonalArticleResource.render(keeper: @keeper, viewer: records) }
    assert_match(/per_viewer :read must return ids .*got .*Class.* instances: write pluck .*library_resources\.rb:\d+/, error.message)
  end

  # --- whatever happens

  def test_kept_bytes_equal_those_written_anew_after_any_edits
    random = Random.new(20_261_121)
    asked = [{}, { include: "author,tags" }, { sort: "-title", include: "comments" }, { page: { number: 2 } }, { id: 4 }]
    25.times do
      edit(random)
      asked.each { |options| assert_equal document(keeper: nil, **options).to_json, document(**options).to_json }
      authors = [nil, @keeper].map { |keeper| models::KeptAuthorResource.render(keeper: keeper, include: "articles.tags") }
      assert_equal authors.first, authors.last
    end
  end

  private

  def dated(day)
    condition = "title >= ?"
    articles = library.models::Article
    scope = articles.respond_to?(:dataset) ? articles.where(Sequel.lit(condition, day)) : articles.where(condition, day)
    models::KeptArticleResource.document(scope, keeper: @keeper)
  end

  def edit(random)
    id = random.rand(1..9)
    library.run(["UPDATE articles SET title = 'T#{random.rand(99)}', position = #{random.rand(9)} WHERE id = #{id}",
                 "DELETE FROM articles WHERE id = #{id}",
                 "UPDATE articles SET author_id = #{random.rand(1..3)} WHERE id = #{id}",
                 "UPDATE authors SET mentor_id = #{random.rand(1..3)} WHERE id = #{random.rand(1..3)}",
                 "UPDATE authors SET name = 'N#{random.rand(99)}' WHERE id = #{random.rand(1..3)}",
                 "DELETE FROM taggings WHERE article_id = #{id}",
                 "INSERT INTO taggings (article_id, tag_id) VALUES (#{id}, #{random.rand(1..2)})", "UPDATE comments SET article_id = #{id}",
                 "INSERT INTO articles (author_id, title, body, position) VALUES (#{random.rand(1..3)}, 'New', 'B',
                 #{random.rand(9)})"][random.rand(8)])
  end

  def models = library.models
  def keeper(store) = Castellan::Keeper.new(store: store, versions: @versions)
  def document(**options) = models::KeptArticleResource.document(keeper: @keeper, **options)

  def resource(name, parent, &block)
    return models.const_get(name, false) if models.const_defined?(name, false)

    models.const_set(name, Class.new(parent, &block))
  end
end

class KeeperOnActiveRecordTest < Minitest::Test
  include KeeperContract

  def test_a_document_with_a_zero_byte_in_an_id_is_written_for_each_viewer
    @versions.install(%w[stamps])
    models::Stamp.create!(id: "a\0b", label: "odd")
    stamps = resource(:PersonalStampResource, models::StampResource) do
      cache :exact
      per_viewer(:read) { |_ids, viewer| viewer }
    end
    [["a\0b"], []].each do |viewer|
      assert_equal stamps.render(keeper: nil, viewer: viewer), stamps.render(keeper: @keeper, viewer: viewer)
    end
    assert_empty @store.written
  ensure
    models::Stamp.delete_all
    @versions.uninstall(%w[stamps])
  end

  def library = Library.active_record(:sqlite)
end

class KeeperOnActiveRecordAndPostgresTest < Minitest::Test
  include KeeperContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
end

class KeeperOnSequelTest < Minitest::Test
  include KeeperContract

  def library = Library.sequel(:sqlite)
end

class KeeperOnSequelAndPostgresTest < Minitest::Test
  include KeeperContract

  def setup
    needs :postgres
    super
  end

  def library = Library.sequel(:postgres)
end
