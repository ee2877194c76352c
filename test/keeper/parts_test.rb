# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require "document/library"

# Documents of one tenant and of one record, with `cache by:`: they are those written anew, whatever was written, and stay when other
# rows change (on PostgreSQL).
module PartsContract
  COLUMNS = %i[id article_id author_id mentor_id].freeze

  def setup
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES - %w[articles comments authors])
    { "articles" => %i[id author_id], "comments" => %i[article_id], "authors" => %i[id mentor_id] }
      .each { |table, by| @versions.install([table], by: by) }
    @keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
    @articles = resource(:PartArticleResource, models::ArticleResource) { cache :exact, by: COLUMNS }
    @authors = resource(:PartAuthorResource, models::AuthorResource) { cache :exact, by: COLUMNS }
    @scoped = resource(:ScopedPartResource, models::ArticleResource) do
      cache :exact, by: :author_id
      scope { |articles, viewer| articles.where(author_id: viewer) }
    end
    comments = resource(:ScopedCommentResource, models::CommentResource) { scope { |comments, viewer| comments.where(article_id: viewer) } }
    @related = resource(:RelatedPartResource, models::ArticleResource) do
      cache :exact, by: :article_id
      has_many :comments, resource: comments
    end
  end

  # A scoped resource of a model concerns all paths to the model, so it must not outlive the test.
  def teardown
    @versions&.uninstall(Library::TABLES)
    @named&.each { |name| models.send(:remove_const, name) }
  end

  def test_a_record_stays_while_others_change
    assert_stays(@articles, 4, "UPDATE articles SET title = 'x' WHERE id = 5",
                 "INSERT INTO comments (id, article_id, body) VALUES (9, 5, 'x')", "DELETE FROM articles WHERE id = 6")
    assert_changes(@articles, 4, "UPDATE articles SET title = 'x' WHERE id = 4",
                   "INSERT INTO comments (id, article_id, body) VALUES (20, 4, 'x')",
                   "UPDATE comments SET article_id = 4 WHERE id = 3", "UPDATE tags SET name = 'x'",
                   "UPDATE authors SET name = 'Y' WHERE id = 2")
  end

  def test_a_tenant_stays_while_others_change
    asked = -> { articles(2) }
    assert_stays(@articles, asked, "UPDATE articles SET title = 'x' WHERE author_id = 3", "UPDATE authors SET name = 'x' WHERE id = 3")
    assert_changes(@articles, asked, "UPDATE articles SET title = 'x' WHERE author_id = 2", "UPDATE authors SET name = 'x' WHERE id = 2",
                   "UPDATE articles SET author_id = 2 WHERE id = 6", "UPDATE articles SET author_id = 3 WHERE id = 6",
                   "INSERT INTO comments (id, article_id, body) VALUES (9, 6, 'x')")
  end

  def test_a_column_that_no_table_has_is_an_error
    wrong = resource(:WrongPartResource, models::ArticleResource) { cache :exact, by: %i[article_id auhtor_id] }
    return assert(wrong.checked_rows) if sqlite? # it ignores them

    error = assert_raises(Castellan::DeclarationError) { wrong.checked_rows }
    assert_includes error.message, "cache by: no table has a column auhtor_id (did you mean author_id?) (#{__FILE__}:#{__LINE__ - 4})"
  end

  def test_the_scope_of_a_resource_names_the_tenant
    assert_stays(@scoped, { viewer: 2 }, "UPDATE articles SET title = 'x' WHERE author_id = 3")
    assert_changes(@scoped, { viewer: 2 }, "UPDATE articles SET title = 'x' WHERE author_id = 2")
  end

  def test_the_scope_of_a_related_resource_names_the_tenant
    assert_stays(@related, { viewer: 2 }, "INSERT INTO comments (id, article_id, body) VALUES (9, 5, 'x')")
    assert_changes(@related, { viewer: 2 }, "INSERT INTO comments (id, article_id, body) VALUES (10, 2, 'x')")
  end

  def test_the_values_of_a_viewer_stay_while_the_rows_of_others_change
    asked = 0
    flagged = resource(:FlaggedPartResource, models::ArticleResource) do
      per_viewer(:mine, version: { comments: :article_id }) { |ids, viewer| ids.select { |id| id == viewer || (asked += 1).zero? } }
      cache :exact
    end
    read = lambda do |viewer|
      before = asked
      document = flagged.render(keeper: @keeper, viewer: viewer, query: { "fields" => { "articles" => "mine" } })
      assert_equal [viewer], JSON.parse(document)["data"].filter_map { |one| one["id"].to_i if one["attributes"]["mine"] }
      asked > before
    end
    assert_equal [true, false, true, false], [6, 6, 5, 5].map(&read)
    library.run("INSERT INTO comments (id, article_id, body) VALUES (9, 5, 'x')")
    assert_equal [sqlite?, true, false, false], [6, 5, 6, 5].map(&read)
  end

  def test_what_reads_other_rows_too_changes_with_them
    assert_changes(@authors, { id: 2, include: "articles.comments" }, "UPDATE comments SET body = 'x' WHERE article_id = 1")
    assert_changes(@authors, { id: 2, include: "mentor" }, "UPDATE authors SET name = 'x' WHERE id = 1")
    assert_changes(@articles, {}, "UPDATE articles SET title = 'x' WHERE id = 5")
    assert_changes(@articles, 4, "UPDATE articles SET id = 40 WHERE id = 4", "INSERT INTO articles (id, title) VALUES (4, 'x')")
  end

  def test_a_value_that_no_statement_can_be_read_with_has_the_version_of_the_table
    ["a", "a\\"].each do |title|
      library.run("UPDATE articles SET title = '#{title}' WHERE author_id = 2")
      check(@articles, articles(2).where(title: title))
    end
  end

  def test_explain_names_the_rows
    named = @articles.document(keeper: @keeper, id: 4).explain.include?("made of (of articles with id = 4, comments with article_id = 4)")
    assert_equal !sqlite?, named
    refute_includes @articles.document(keeper: @keeper).explain, "made of ("
  end

  def test_no_answer_is_stale_after_any_edits
    random = Random.new(20_261_123)
    40.times do
      edit(random)
      id = random.rand(1..9)
      check(@articles, :all, id: id)
      check(@articles, :all, id: id, include: "author,comments")
      check(@articles, articles(random.rand(1..3)), include: %w[author tags].sample(random: random))
      check(@authors, :all, id: random.rand(1..3), include: ["articles.comments", "mentor", ""].sample(random: random))
      check(@scoped, :all, viewer: random.rand(1..3), page: { number: random.rand(1..2) })
      check(@related, :all, viewer: id, include: "comments")
      visit("/articles/#{id}?include=comments", random.rand(1..3))
      visit("/articles?include=author", random.rand(1..3))
    end
  end

  private

  def check(resource, scope, **options)
    assert_equal resource.render(scope, keeper: nil, **options), resource.render(scope, keeper: @keeper, **options), options.to_s
  end

  # Twice: the second request has a hit without a rendering.
  def visit(path, viewer)
    author = models::Article
    @app ||= begin
      resource = @articles
      Castellan.app do
        authenticate { |env| env["HTTP_VIEWER"].to_i }
        resource resource, at: "/articles", scope: ->(viewer) { author.where(author_id: viewer) }
      end
    end
    before = Castellan.keeper
    Castellan.keeper = @keeper
    get = -> { Rack::MockRequest.new(@app).get(path, "HTTP_VIEWER" => viewer.to_s) }
    expected = with_env("CASTELLAN" => "off") { get.call }
    3.times { assert_equal [expected.status, expected.body], [get.call.status, get.call.body], path }
  ensure
    Castellan.keeper = before
  end

  def edit(random)
    id, other, author = random.rand(1..9), random.rand(1..9), random.rand(1..3)
    new = @last = @last.to_i + 1000
    [-> { library.run("UPDATE articles SET title = 'T#{random.rand(99)}' WHERE id = #{id}") },
     -> { library.run("UPDATE articles SET author_id = #{author} WHERE id = #{id}") },
     -> { library.run("DELETE FROM articles WHERE id = #{id}") },
     -> { library.run("UPDATE comments SET article_id = #{id} WHERE article_id = #{other}") },
     -> { library.run("INSERT INTO comments (id, article_id, body) VALUES (#{new}, #{id}, 'B')") },
     -> { library.run("DELETE FROM comments WHERE article_id = #{id}") },
     -> { library.run("UPDATE authors SET name = 'N#{random.rand(99)}', mentor_id = #{author} WHERE id = #{random.rand(1..3)}") },
     -> { library.run("UPDATE articles SET position = position + 1 WHERE author_id = #{author}") },
     -> { library.run("INSERT INTO articles (id, author_id, title, position) VALUES (#{new}, #{author}, 'New', 1)") }]
      .sample(random: random).call
  end

  def assert_stays(resource, asked, *writes)
    return if sqlite? # it has versions of tables

    writes.each do |sql|
      before = etag(resource, asked)
      library.run(sql)
      assert_equal before, etag(resource, asked), sql
    end
  end

  def assert_changes(resource, asked, *writes)
    writes.each do |sql|
      before = etag(resource, asked)
      library.run(sql)
      refute_equal before, etag(resource, asked), sql
    end
  end

  def etag(resource, asked)
    return resource.document(asked.call, keeper: @keeper).etag if asked.respond_to?(:call)

    resource.document(keeper: @keeper, **(asked.is_a?(Hash) ? asked : { id: asked })).etag
  end

  def sqlite? = [Library.active_record(:sqlite), Library.sequel(:sqlite)].include?(library)
  def models = library.models
  def articles(author) = models::Article.where(author_id: author)

  def resource(name, parent, &block)
    (@named ||= []) << name
    models.const_set(name, Class.new(parent, &block))
  end
end

{ ActiveRecord: :active_record, Sequel: :sequel }.each do |name, orm|
  %i[sqlite postgres].each do |database|
    Object.const_set("PartsOn#{name}And#{database.capitalize}Test", Class.new(Minitest::Test) do
      include PartsContract

      define_method(:setup) do
        needs :postgres if database == :postgres
        super()
      end
      define_method(:library) { Library.public_send(orm, database) }
    end)
  end
end
