# frozen_string_literal: true

require "test_helper"
require "document/library"
require "pp"

# The lazy answer to one request, on both ORMs.
module DocumentContract
  def setup
    library.fill
  end

  def test_nothing_is_read_until_bytes_are_requested
    document = nil
    assert_empty(library.queries { document = articles.document(include: "author,tags", viewer: 1) })
    assert_equal 1, library.queries {
      document.to_json
      document.to_json
      document.etag
      document.status
    }.grep(/COUNT|count/).size
  end

  # `document(user.posts)`: whatever compares such a relation loads it.
  def test_an_association_is_read_as_rows_once_bytes_are_requested
    author = library.models::Author.first
    scopes = author.is_a?(ActiveRecord::Base) ? [author.articles, author.articles.where("id > 0")] : [author.articles_dataset]
    scopes.each do |scope|
      document = nil
      assert_empty(library.queries { document = articles.document(scope) })
      assert_instance_of Castellan::Document, document
      assert_equal articles.render(library.models::Article.where(author_id: author.id)), document.to_json
    end
  end

  def test_one_statement_for_each_relationship_however_many_records
    few = library.queries { articles.render(include: "author,tags,comments", page: { size: 1, number: 7 }) }.size
    assert_equal few, library.queries { articles.render(include: "author,tags,comments", page: { size: 5, number: 2 }) }.size
  end

  def test_inspect_is_short_and_reads_nothing
    document = articles.document(viewer: 1)
    assert_empty(library.queries { assert_match(/\A#<Castellan::Document of \w+>\z/, document.inspect) })
    assert_empty(library.queries { assert_equal "#{document.inspect}\n", PP.pp(document, +"") })
  end

  def test_it_is_a_rack_body
    document = articles.document
    assert_equal [document.to_json], document.enum_for(:each).to_a
    assert_equal [200, "application/vnd.api+json"], [document.status, document.headers["content-type"]]
    assert_equal document.etag, document.headers["etag"]
  end

  def test_one_record_or_404
    assert_equal 200, articles.document(id: 3).status
    [articles.document(id: 99), articles.document(id: 99, format: :nested)].each { |document| assert_equal 404, document.status }
    assert_equal ['{"data":null}', "null"], [articles.render(id: 99), articles.render(id: 99, format: :nested)]
    assert_equal articles.render(id: 3), articles.render(id: "3")
  end

  def test_meta_and_links_are_written_with_the_total
    document = JSON.parse(articles.render(meta: { a: 1 }, links: { self: "/articles" }))
    assert_equal [{ "total" => 7, "a" => 1 }, { "self" => "/articles" }], document.values_at("meta", "links")
  end

  def test_meta_and_links_are_written_as_attributes_are
    around = { at: Time.utc(2024, 1, 31, 10), price: BigDecimal("1.50"), text: "<a>\u2028" }
    expected = %({"at":"2024-01-31T10:00:00.000Z","price":"1.5","text":"\\u003ca\\u003e\\u2028"})
    written = articles.render(meta: around, links: { self: { href: "/a?b&c", meta: around } })
    assert_includes written, %("at":"2024-01-31T10:00:00.000Z","price":"1.5","text":"\\u003ca\\u003e\\u2028"},"links")
    assert_includes written, %("links":{"self":{"href":"/a?b\\u0026c","meta":#{expected}}})
  end

  def test_per_viewer_values_are_written_like_attributes
    values = { at: Time.utc(2024, 1, 31, 10), price: BigDecimal("1.50"), text: "<a>\u2028\0é", flag: true, none: nil }
    resource = Class.new(articles) do
      type "articles"
      per_viewer(:own) { |ids, _viewer| ids.to_h { |id| [id, values] } }
      attribute(:block, columns: :title) { |_row| values }
      per_viewer(:bad) { |ids, viewer| viewer ? ids.to_h { |id| [id, "\xFF"] } : [] }
    end
    written = resource.render(library.models::Article.where(id: 7), fields: { articles: "own,block,bad" })
    assert_includes written, %("price":"1.5","text":"\\u003ca\\u003e\\u2028\\u0000é","flag":true,"none":null})
    assert_equal 1, written.scan(/\{"at":"2024-01-31T10:00:00.000Z".*?\}/).uniq.size
    error = assert_raises(Castellan::EncodingError) { resource.render(fields: { articles: "bad" }, viewer: 1) }
    assert_match(/articles "\d+", member "bad": .*; correct the row, or let the block return what is to be written/, error.message)
  end

  def test_meta_and_links_that_cannot_be_written_raise_an_error
    error = assert_raises(Castellan::EncodingError) { articles.render(meta: { a: "\xFF" }) }
    assert_match(/\Aarticles, meta of the document: /, error.message)
    { meta: 5, links: ["/articles"] }.each do |member, value|
      error = assert_raises(Castellan::ConfigurationError) { articles.document(member => value) }
      assert_includes error.message, "#{member}: of a document must be a Hash, got #{value}"
    end
  end

  # `document(User.find_by(email: email))`, `document(current_user&.posts)`: nobody meant all of them.
  def test_nil_is_no_record_and_not_all_of_them
    assert_equal ['{"data":null}', 404], [articles.render(nil), articles.document(nil).status]
    assert_equal "null", articles.render(nil, format: :nested)
    assert_equal articles.render(id: 99, include: "author"), articles.render(nil, include: "author", sort: "title")
    assert_equal 404, articles.document(nil, id: 1).status
    assert_equal ['{"data":null}', 404], [articles.render(id: nil), articles.document(id: nil).status]
    assert_equal articles.render, articles.render(id: :all)
    assert_empty(library.queries { articles.render(nil, include: "author") })
    assert_equal articles.render, articles.render(:all)
  end

  def test_a_record_of_another_model_needs_a_reader_for_each_member
    tag = library.models::Tag.first
    [tag, [tag], [articles.document.rendering.records.first, nil]].each do |given|
      error = assert_raises(Castellan::ConfigurationError) { articles.document(given) }
      assert_match(/records that have (?:title, position|id)\b.*, got (?:#|nil)/, error.message)
    end
    assert_equal "1", JSON.parse(articles.render(tag, fields: { articles: "" }))["data"]["id"]
  end

  def test_a_document_is_private_unless_it_is_declared_public
    assert_equal "private, no-cache", articles.document.cache_control
    assert_equal "public, no-cache", articles.document.public!.cache_control
    assert_equal "private, no-cache", articles.document(viewer: 1).public!.cache_control
    assert_equal "private, no-cache", library.models::PersonalArticleResource.document.public!.cache_control
  end

  def test_headers_have_the_declared_cache_control
    articles = Class.new(library.models::ArticleResource) { cache_control max_age: 5, s_maxage: 60, cdn: { max_age: 90 } }
    assert_equal ["private, max-age=5", nil], articles.document.headers.values_at("cache-control", "cdn-cache-control")
    assert_equal ["public, max-age=5, s-maxage=60", "max-age=90"],
                 articles.document.public!.headers.values_at("cache-control", "cdn-cache-control")
  end

  def test_an_invalid_cache_control_raises_with_its_line_and_an_example
    { { max_age: -1 } => "cache_control: max_age: must be seconds, 0 or more, got -1; write for example max_age: 60",
      { s_maxage: "60" } => "cache_control: s_maxage: must be seconds, 0 or more, got \"60\"; write for example s_maxage: 60",
      { max_age: Float::INFINITY } => "cache_control: max_age: must be seconds, 0 or more, got Infinity; ",
      { cdn: { max_age: nil } } => "cache_control: cdn: max_age: must be seconds, 0 or more, got nil; write for example max_age: 60",
      { cdn: 60 } => "cache_control: cdn: must be a Hash, got 60; write for example cdn: { max_age: 3600 }",
      { cdn: { s_maxage: 60 } } => "cache_control: cdn: :s_maxage is not known; write max_age, stale_while_revalidate, stale_if_error",
      { max_age: 60, immutable: 1 } => "cache_control: immutable: must be true or false, got 1; write for example immutable: true",
      { immutable: true } => "cache_control: immutable: needs a lifetime; write for example max_age: 86_400, immutable: true",
      { maxage: 1 } => "cache_control: :maxage is not known; write max_age, " }.each do |directives, message|
      articles = Class.new(library.models::ArticleResource) { cache_control(**directives) }
      error = assert_raises(Castellan::ConfigurationError, message) { articles.document.headers }
      assert_includes error.message, message
      assert_match(/\Aan unnamed resource cache_control: .*document_test\.rb:\d+\)\z/, error.message)
    end
  end

  def test_a_scope_of_another_model_is_refused
    [library.models::Tag, [1], "articles"].each do |scope|
      assert_includes assert_raises(Castellan::ConfigurationError) { articles.document(scope) }.message, "give document a scope of that"
    end
    statements = library.queries do
      error = assert_raises(Castellan::ConfigurationError) { articles.document(library.models::Tag.order(:id)) }
      assert error.message.end_with?("got records of #{library.models::Tag}"), error.message
    end
    assert_empty statements
  end

  def test_a_representation_or_format_that_is_not_declared_is_the_developers_mistake
    assert_includes assert_raises(Castellan::ConfigurationError) {
      articles.document(representation: :sumary)
    }.message, "did you mean summary?"
    assert_includes assert_raises(Castellan::ConfigurationError) { articles.document(format: :xml) }.message, "write :json_api or :nested"
  end

  def test_explain_lists_the_reads_and_reads_nothing
    text = nil
    assert_empty(library.queries { text = articles.document(include: "author", sort: "-title").explain })
    assert_includes text, "articles: id, title, position, author.name from"
    assert_includes text, "tags: linkage only, no record of tags is loaded"
    assert_includes text, "author: linkage, and the included records:"
    assert_includes text, "headline: computed from title, position"
    assert_match(/tables: .*articles, authors/, text)
  end

  def test_explain_prints_why_models_are_loaded_and_nothing_is_kept
    text = Class.new(articles) {
      cache :exact
      attribute(:shout) { |record| record.title.upcase }
    }.document.explain
    assert_includes text, "the models of this type are loaded once, in one batch, and all its members are read from them, because:"
    assert_includes text, "    shout: its block takes the record"
    assert_match(/tables: not known\nkept: never, because:\n  an unnamed resource attribute :shout: its block gets the whole record/, text)
  end

  private

  def articles = library.models::ArticleResource
end

class DocumentOnActiveRecordTest < Minitest::Test
  include DocumentContract

  def library = Library.active_record(:sqlite)

  def test_the_room_works_alone
    code = 'require "castellan/document"; p Castellan.keeper, defined?(Castellan::Keeper), defined?(ActiveRecord),
    defined?(Sequel)'
    assert_equal "nil\nnil\nnil\nnil\n", run_ruby("-w", "-e", code)
  end

  def test_a_scope_from_before_a_reload_is_refused_with_the_reason
    model = library.models::Article
    reloaded = Class.new(model.superclass) { define_singleton_method(:name) { model.name } }
    reloaded.table_name = "articles"
    error = assert_raises(Castellan::ConfigurationError) { articles.document(reloaded.order(:id)) }
    assert error.message.end_with?("got records of #{model.name}, another class of the same name: " \
                                   "after a reload, look up the resource and the scope again"), error.message
  end
end

# A connection of its own, which goes while the resource is there.
class DocumentWithoutAConnectionTest < Minitest::Test
  class Letter < ActiveRecord::Base
    belongs_to :answered, class_name: "Letter", optional: true
  end

  class LetterResource < Castellan::Resource
    model Letter
    type :letters
    attributes :subject
    belongs_to :answered, resource: self
  end

  def setup
    Letter.establish_connection(adapter: "sqlite3", database: ":memory:")
    Letter.connection.execute("CREATE TABLE #{Letter.table_name} (id integer PRIMARY KEY, subject text, answered_id integer)")
    LetterResource.render
  end

  def teardown
    Letter.remove_connection
  end

  def test_the_orms_error_is_raised
    Letter.remove_connection
    document = LetterResource.document(include: "answered")
    [-> { document.explain }, -> { document.to_json }].each { |read| assert_raises(ActiveRecord::ConnectionNotEstablished, &read) }
  end
end

class DocumentOnSequelTest < Minitest::Test
  include DocumentContract

  def library = Library.sequel(:sqlite)

  # Each names the other's model, and reads nothing.
  def test_a_scope_of_the_other_orm_is_refused
    other = Library.active_record(:sqlite)
    { articles => other, other.models::ArticleResource => library }.each do |resource, stranger|
      statements = [library, other].flat_map do |one|
        one.queries do
          error = assert_raises(Castellan::ConfigurationError) { resource.document(stranger.models::Tag.order(:id)) }
          assert error.message.end_with?("got records of #{stranger.models::Tag}"), error.message
        end
      end
      assert_empty statements
    end
  end

  def test_a_dataset_of_sql_is_refused
    error = assert_raises(Castellan::ConfigurationError) { articles.document(library.models::DB["SELECT * FROM articles"]) }
    assert_includes error.message, "give document a scope of that"
  end
end
