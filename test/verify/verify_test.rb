# frozen_string_literal: true

require "test_helper"
require "json"
require "document/library"
require "castellan/serializer"
require "support/model_document"

# Compares documents from rows with those from models.
module VerifyContract
  def setup
    library.fill
  end

  def test_equal_documents_have_no_differences
    asked = [{}, { include: "author,tags,comments" }, { include: "author.articles,author.mentor" }, { fields: { articles: "title,tags" } },
             { format: :nested, include: "author,comments" }, { sort: "-title" }, { filter: { "title" => "Title 3" } },
             { filter: { "title" => "none" }, include: "author" }, { id: 3, include: "author" }, { id: 99 }, { id: 3, format: :nested },
             { meta: { a: 1 }, links: { self: "/" } }]
    asked.each do |options|
      result = Castellan.verify { long.render(**options) }
      assert_predicate result, :same?, "#{options}: #{result}"
      assert_equal long.render(**options), result.value, options.to_s
      assert_empty Castellan::TestSupport::ModelDocument.differences(long.document(**options)).map(&:to_s)
    end
  end

  def test_computed_and_per_viewer_values_are_equal
    [articles, library.models::WatchedArticleResource].each do |resource|
      result = Castellan.verify { resource.document(include: "author", viewer: 2) }
      assert_predicate result, :same?, result.to_s
      assert_equal resource.render(include: "author", viewer: 2), result.value
    end
  end

  def test_a_difference_is_reported_and_the_models_document_is_served
    result = reading(:Article, :title, ->(title) { title.sub("5", "five") }) { Castellan.verify { long.render(include: "author") } }
    assert_equal [["articles", "5", "title", "Title 5", "Title five"]], result.differences.map(&:to_a)
    assert_equal 'articles 5: title is "Title 5" by rows, "Title five" by the models', result.differences.first.to_s
    assert_equal JSON.parse(long.render(include: "author").sub("Title 5", "Title five")), JSON.parse(result.value)
  end

  def test_linkage_and_included_records_are_compared
    result = reading(:Article, :author, ->(author) { author unless author.id == 3 }) { Castellan.verify { long.render(include: "author") } }
    assert_equal [["articles", "2", "author"], ["articles", "2", "author_name"], ["articles", "5", "author"],
                  ["articles", "5", "author_name"], ["included authors", "3", nil]], places(result)
    second = JSON.parse(result.value)["data"].find { |record| record["id"] == "2" } # the scope has no order
    assert_nil second["relationships"]["author"]["data"]
    refute_includes result.value, '"name":"Edsger"'
    asked = { fields: { articles: "author", authors: "name" }, include: "author" }
    result = reading(:Author, :name, :upcase.to_proc) { Castellan.verify { long.render(**asked) } }
    assert_equal [["included authors", "1", "name"], ["included authors", "2", "name"], ["included authors", "3", "name"]], places(result)
  end

  # Both ORMs set an article as its author's only one when the author is loaded.
  def test_a_record_is_compared_the_same_on_every_path
    articles = model_of_first_articles
    result = Castellan.verify { articles.render(include: "author", sort: "-id") }
    assert_predicate result, :same?, result.to_s
    first = JSON.parse(result.value)["included"].to_h { |author| [author["id"], author["relationships"]["first_article"]["data"]["id"]] }
    assert_equal({ "1" => "3", "2" => "1" }, first.slice("1", "2"))
  end

  def test_lists_without_an_order_are_equal_in_any_order
    assert_predicate reading(:Article, :comments, :reverse.to_proc) { Castellan.verify { long.render } }, :same?
    result = reading(:Article, :comments, ->(comments) { comments.first(1) }) { Castellan.verify { long.render } }
    assert_equal [%w[articles 1 comments]], places(result)
  end

  def test_nested_documents_are_compared
    asked = { include: "author", format: :nested, fields: { articles: "title,author", authors: "name" } }
    result = reading(:Author, :name, ->(name) { name.sub("Ada", "Eda") }) { Castellan.verify { long.render(**asked) } }
    assert_equal ["articles 3 author", "articles 6 author"], result.differences.map(&:resource)
    assert_equal long.render(**asked).gsub('"name":"Ada"', '"name":"Eda"'), result.value
  end

  def test_the_models_document_has_the_viewers_values
    document = -> { library.models::WatchedArticleResource.render(include: "author", viewer: 2) }
    result = reading(:Article, :title, ->(title) { title.sub("5", "five") }, document) { Castellan.verify(&document) }
    assert_equal [%w[articles 5 title]], places(result)
    assert_equal JSON.parse(document.call.sub("Title 5", "Title five")), JSON.parse(result.value)
  end

  def test_rows_that_change_between_both_reads_are_no_difference
    change = lambda do |title|
      library.run("UPDATE articles SET title = 'New' WHERE id = 7") if title == "Title 1"
      title
    end
    assert_predicate reading(:Article, :title, change) { Castellan.verify { long.render } }, :same?
  end

  def test_the_queries_of_a_verification_are_not_the_applications
    render = -> { long.render(include: "author") }
    plain, verified = [render, -> { Castellan.verify { render.call } }].map { |work| Castellan::Detect.watch(slow_ms: nil, &work).map(&:count) }
    assert_equal plain, verified
  end

  def test_a_reader_that_renders_a_document_does_not_recurse
    look = ->(title) { long.render(fields: { articles: "position" }) && title }
    result = reading(:Article, :title, look) { Castellan.verify { long.render } }
    assert_equal [1, true], [result.documents, result.same?]
  end

  def test_an_error_of_the_models_is_a_difference
    seen = 0
    broken = Class.new(long) { attribute(:shout, columns: %i[title]) { |row| (seen += 1) > 7 ? raise("later") : row.title } }
    result = Castellan.verify { broken.render }
    assert_includes result.value, '"shout":"Title 7"'
    assert_equal [["articles", nil, "verification", "written", "RuntimeError: later"]], result.differences.map(&:to_a)
  end

  def test_verifications_nest_and_end_with_their_block
    inner = nil
    outer = Castellan.verify { inner = Castellan.verify { long.render } }
    assert_equal [1, 0], [inner.documents, outer.documents]
    assert_nil Castellan::Verify.current
    refute_predicate Castellan.verify { 1 }, :same?
  end

  def test_cached_documents_are_written_again
    kept = library.models::KeptArticleResource
    versions = Struct.new(:version) { def current(_) = version }.new("1")
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
    2.times { kept.render(keeper: keeper) }
    assert_equal 1, Castellan.verify { kept.render(keeper: keeper) }.documents
  end

  def test_scopes_of_resources_hold_for_the_records_too
    authors = Class.new(library.models::AuthorResource) { scope { |relation, viewer| relation.where(id: viewer) } }
    scoped = Class.new(long) { belongs_to :author, resource: authors }
    result = Castellan.verify { scoped.render(include: "author", viewer: [1, 2]) }
    assert_predicate result, :same?, result.to_s
    assert_equal(%w[1 2], JSON.parse(result.value)["included"].map { |one| one["id"] }.sort)
  end

  def test_hidden_attributes_stay_hidden
    guarded = Class.new(long) { attribute :title, if: ->(_row, viewer) { viewer == :keeper } }
    body = guarded.render(viewer: :guest)
    result = Castellan.verify { guarded.render(viewer: :guest) }
    refute_includes result.value, "Title"
    assert_equal [body, 1, true], [result.value, result.documents, result.same?]
  end

  def test_conditions_links_and_meta_objects_receive_the_models_values
    [{}, { include: "author" }, { include: "author,tags", format: :nested }, { fields: { articles: "title" } },
     { viewer: 2 }].each do |asked|
      result = Castellan.verify { adorned.render(**asked) }
      assert_predicate result, :same?, "#{asked}: #{result}"
      assert_equal [adorned.render(**asked), 1], [result.value, result.documents]
    end
  end

  def test_a_different_condition_link_or_meta_object_is_reported
    render = -> { adorned.render(include: "author") }
    result = reading(:Article, :position, ->(position) { position && (position + 1) }, render) { Castellan.verify(&render) }
    assert_equal ["author meta", "links", "meta", "position", "title"], result.differences.map(&:attribute).compact.uniq.sort
    rows, models = [render.call, result.value].map { |body| JSON.parse(body)["data"].find { |one| one["id"] == "1" } }
    at = rows["meta"]["at"] + 1
    assert_equal ["/at/#{at}", at, at], [models["links"]["self"], models["meta"]["at"], models.dig("relationships", "author", "meta", "at")]
    assert_equal [rows["attributes"]["position"] != 3, at != 3], [rows, models].map { |one| one["attributes"].key?("title") }
  end

  def test_relationships_to_several_types_are_compared
    result = Castellan.verify { several.render(include: "subjects") }
    assert_predicate result, :same?, result.to_s
    assert_equal JSON.parse(several.render(include: "subjects")), JSON.parse(result.value)
    result = Castellan.verify { several.render(include: "subjects", format: :nested) }
    assert_predicate result, :same?, result.to_s
  end

  def test_documents_of_serializers_are_compared
    write = -> { serializers.new(library.models::Article.where(id: [1, 5]), include: [:author]).to_json }
    result = Castellan.verify(&write)
    assert_equal [1, true, write.call], [result.documents, result.same?, result.value]
    result = reading(:Article, :title, ->(title) { title.sub("5", "five") }, write) { Castellan.verify(&write) }
    assert_equal [["article", "5", "title", "Title 5", "Title five"]], result.differences.map(&:to_a)
    assert_includes result.value, '"title":"Title five"'
    assert_equal 0, Castellan.verify { serializers.new([]).to_json }.documents
  end

  def test_streams_are_compared_as_a_whole
    streamed = -> { long.document.stream(size: 2) }
    result = reading(:Article, :title, :upcase.to_proc) { Castellan.verify { streamed.call.each.to_a.join } }
    assert_equal [1, 7], [result.documents, result.differences.size]
    assert_includes result.value, '"title":"TITLE 5"'
    later = reading(:Article, :title, :upcase.to_proc) { Castellan.verify { [200, {}, streamed.call] } }
    assert_equal [7, true], [later.differences.size, later.value.last.each.to_a.join.include?('"title":"TITLE 5"')]
  end

  def test_a_stream_that_is_too_long_is_written_in_pieces_and_counted
    most = Castellan::Verify::Verification::MOST_STREAMED
    verification = Castellan::Verify::Verification.new
    assert_equal [[true, false], 1], [[most, most + 1].map { |count| verification.takes?(count) }, verification.passed_over]
    assert_includes verification.to_s, "1 not compared (streams of more than 10000 records)"
  end

  # Sequel reads times without a zone in the machine's zone.
  def test_a_time_of_a_machine_in_utc_is_written_as_rows_write_it
    with_env("TZ" => "UTC") do
      time = Time.at(0)
      attribute = long.definition.attributes[:title]
      assert_equal ["1970-01-01T00:00:00.000Z"] * 2,
                   [Castellan::TestSupport::ModelValues.new(nil).attribute({ title: time }, attribute), Castellan::Rows::JSONValue.plain(time)]
    end
  end

  def test_the_middleware_verifies_some_requests
    reported = []
    random = Struct.new(:rolls) { def rand = rolls.shift }.new([0.4, 0.6])
    app = Castellan::Verify::Middleware.new(->(_) { [200, {}, [long.render]] }, rate: 0.5, report: reported.method(:<<), random: random)
    verified, other = reading(:Article, :title, :upcase.to_proc) { [app.call({}), app.call({})] }
    assert_equal ['"title":"TITLE 5"', '"title":"Title 5"'], [verified, other].map { |answer| answer.last.first[/"title":"Title 5"/i] }
    assert_equal 7, reported.size
  end

  def test_a_document_as_the_body_is_verified_before_it_is_sent
    reported = []
    app = Castellan::Verify::Middleware.new(->(_) { [200, {}, long.document] }, rate: 1, report: reported.method(:<<))
    status, headers, body = reading(:Article, :title, :upcase.to_proc) { app.call({}) }
    assert_equal [200, {}, 7], [status, headers, reported.size]
    assert_includes body.enum_for(:each).to_a.join, '"title":"TITLE 5"'
  end

  def test_an_error_of_the_report_changes_no_response
    log = StringIO.new
    app = Castellan::Verify::Middleware.new(->(_) { [200, {}, [long.render]] }, rate: 1, report: ->(_) { raise "the tracker is down" })
    _, _, body = reading(:Article, :title, :upcase.to_proc) { app.call({ "rack.errors" => log }) }
    assert_includes body.first, '"title":"TITLE 5"'
    assert_equal 7, log.string.scan("could not report a difference: ").size
    refute_includes log.string, "TITLE"
  end

  def test_castellan_off_turns_the_middleware_off
    app = Castellan::Verify::Middleware.new(->(_) { Castellan::Verify.current }, rate: 1, report: ->(_) {})
    refute_nil app.call({})
    with_env("CASTELLAN" => "off") { assert_nil app.call({}) }
  end

  def test_invalid_options_of_the_middleware_raise
    mistakes = [[2, ->(_) {}, "from 0 to 1"], ["often", ->(_) {}, "from 0 to 1, got \"often\""], [0.1, nil, "must respond to call"]]
    mistakes.each do |rate, report, text|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Verify::Middleware.new(->(_) {}, rate: rate, report: report) }
      assert_includes error.message, text
    end
  end

  private

  def model_of_first_articles
    library.models.const_defined?(:FirstArticle, false) || library.models.module_eval(first_articles, __FILE__, __LINE__)
    resource(library.models::FirstArticle, "articles").tap do |articles|
      authors = resource(library.models::FirstAuthor, "authors")
      articles.sort :id
      articles.belongs_to :author, resource: authors
      authors.has_one :first_article, resource: articles
    end
  end

  def resource(model, type)
    Class.new(Castellan::Resource) do
      model model
      type type
    end
  end

  def long = library.models::LongArticleResource

  # A resource whose conditions, links and meta objects depend on the row.
  def adorned
    @adorned ||= Class.new(long) do
      attribute :title, if: ->(row, _viewer) { row.position != 3 }, if_columns: %i[position]
      attribute(:body_size, columns: %i[body]) { |row| row.body.to_s.size }
      belongs_to :author, resource: "AuthorResource", if: ->(row, viewer) { row.id != viewer }, links: { self: "/by/{author_id}" },
                          meta: ->(row) { { at: row.position } }, columns: %i[id position]
      link :self, "/at/{position}"
      meta({ at: nil })
      meta(columns: %i[position]) { |row| { at: row.position } }
    end
  end

  def serializers
    @serializers ||= Module.new.tap { |space| library.models.const_set(:"Verified#{space.object_id}", space) }.then do |space|
      space.module_eval("class AuthorSerializer; end; class ArticleSerializer; end", __FILE__, __LINE__)
      space::AuthorSerializer.class_eval { include(Castellan::Serializer) && attributes(:name) }
      space::ArticleSerializer.class_eval { include(Castellan::Serializer) && attributes(:title) && belongs_to(:author) }
      space::ArticleSerializer
    end
  end

  def several
    models = library.models
    @several ||= Class.new(long) do
      has_many(:subjects, resource: { "#{models}::Author" => "AuthorResource", "#{models}::Tag" => "TagResource" }) do |article|
        [article.author, *article.tags.sort_by(&:id)].compact
      end
    end
  end

  def articles = library.models::ArticleResource

  def places(result) = result.differences.map { |difference| difference.to_a.first(3) }.sort_by(&:to_s)

  # Overrides a reader after the resource was declared, so that only the models call it.
  def reading(model, name, change, primed = nil)
    primed ? primed.call : prime
    model = library.models.const_get(model)
    model.define_method(name) { change.call(super(&nil)) }
    yield
  ensure
    model.remove_method(name)
  end

  def prime
    [{}, { include: "author" }, { include: "author", format: :nested, fields: { articles: "title,author", authors: "name" } },
     { fields: { articles: "author", authors: "name" }, include: "author" }].each { |asked| long.render(**asked) }
  end
end

module FirstArticlesOfActiveRecord
  private

  def first_articles
    <<~RUBY
      class FirstAuthor < Base
        self.table_name = "authors"
        has_one :nobody, through: :what_is_not_declared # and is not asked for
        has_one :first_article, -> { order(:id) }, foreign_key: :author_id, class_name: "\#{name.sub("Author", "Article")}", inverse_of: :author
      end
      class FirstArticle < Base
        self.table_name = "articles"
        belongs_to :author, class_name: "\#{name.sub("Article", "Author")}", inverse_of: :first_article
      end
    RUBY
  end
end

class VerifyOnActiveRecordTest < Minitest::Test
  include VerifyContract
  include FirstArticlesOfActiveRecord

  def library = Library.active_record(:sqlite)

  def test_associations_that_forbid_lazy_loading_are_compared
    base = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    self.class.const_set(:Strict, base)
    base.establish_connection(adapter: "sqlite3", database: ":memory:")
    %w[guilds knights].each { |table| base.connection.create_table(table) { |columns| columns.integer :guild_id } }
    guilds, knights = %w[guilds knights].map { |table| Class.new(base) { self.table_name = table } }
    knights.belongs_to :guild, anonymous_class: guilds, foreign_key: :guild_id, strict_loading: true
    guilds.has_many :knights, anonymous_class: knights, foreign_key: :guild_id, strict_loading: true
    2.times { knights.create!(guild: guilds.create!) }
    guild, knight = [["guilds", guilds], ["knights", knights]].map { |type, model| plain_resource(type, model) }
    guild.has_many :knights, resource: knight
    knight.belongs_to :guild, resource: guild
    [[guild, "knights"], [knight, "guild"]].each do |rendered, path|
      result = Castellan.verify { rendered.render(include: path) }
      assert_predicate result, :same?, result.to_s
    end
  ensure
    base.remove_connection
    self.class.send(:remove_const, :Strict)
  end

  private

  def plain_resource(type, model)
    Class.new(Castellan::Resource) do
      model model
      type type
    end
  end
end

class VerifyOnSequelTest < Minitest::Test
  include VerifyContract

  def library = Library.sequel(:sqlite)

  def test_models_that_forbid_lazy_loading_are_compared
    database = Sequel.sqlite(keep_reference: false)
    database.create_table(:guilds) { primary_key :id }
    database.create_table(:knights) do
      primary_key :id
      Integer :guild_id
    end
    database[:guilds].import([:id], [[1], [2]])
    database[:knights].import(%i[id guild_id], [[1, 1], [2, 2]])
    guilds, knights = %i[guilds knights].map { |table| Class.new(Sequel::Model(database[table])) { plugin :forbid_lazy_load } }
    knights.many_to_one :guild, class: guilds
    guild = Class.new(Castellan::Resource) { type "guilds" }
    guild.model(guilds)
    resource = Class.new(Castellan::Resource) { type "knights" }
    resource.model(knights)
    resource.belongs_to :guild, resource: guild
    result = Castellan.verify { resource.render(include: "guild") }
    assert_predicate result, :same?, result.to_s
  end

  private

  def first_articles
    <<~RUBY
      class FirstAuthor < Sequel::Model(DB[:authors])
      end
      class FirstArticle < Sequel::Model(DB[:articles])
        many_to_one :author, class: FirstAuthor
      end
      FirstAuthor.one_to_one :first_article, class: FirstArticle, key: :author_id, order: :id
    RUBY
  end
end

class VerifyOnPostgresTest < Minitest::Test
  include VerifyContract
  include FirstArticlesOfActiveRecord

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
end
