# frozen_string_literal: true

require "test_helper"
require "pg"
require "serve/journal_requests"

# The URLs of relationships neither show nor change hidden resources, and a committed request is not performed again.
module UnseenContract
  include JournalRequests

  def build
    tags = resource_of(:TagResource) { scope { |tags, team| team.zero? ? tags : tags.where(id: [1, 3]) } }
    hiding = resource_of(:PostResource) do
      has_many :tags, resource: tags
      has_many :comments, if: ->(row, _viewer) { row.title == "First" }, columns: %i[title]
      representation :summary, only: %i[title tags]
    end
    serve do
      resource hiding, at: "posts"
      resource hiding, at: "summaries", representation: :summary
      operations
    end
  end

  def test_a_fixed_representation_holds_at_the_urls_of_relationships
    assert_equal 200, get("/posts/1/writer").first.status
    %w[/summaries/1/writer /summaries/1/relationships/writer].each { |path| assert_equal 404, get(path).first.status, path }
    assert_equal 404, send_data("PATCH", "/summaries/1/relationships/writer", { type: "writers", id: "2" }).first.status
    assert_equal 200, get("/summaries/1/relationships/tags").first.status
  end

  def test_fixed_fields_also_limit_what_clients_include
    models = journal.models
    @app = serve { resource models::PostResource, at: "titles", fields: { posts: %i[title writer], writers: %i[name] } }
    titles = get("/titles?include=writer").last
    assert_equal %w[writers], titles["included"].map { |one| one["type"] }.uniq
    %w[comments writer.posts writer,comments].each do |path|
      response, document = get("/titles/1?include=#{path}")
      assert_equal [400, "include"], [response.status, document["errors"][0].dig("source", "parameter")], path
    end
    assert_equal 404, get("/titles/1/comments").first.status
  end

  def test_a_condition_of_the_row_holds_at_the_urls_of_relationships
    %w[/posts/1/comments /posts/1/relationships/comments].each { |path| assert_equal 200, get(path).first.status, path }
    %w[/posts/3/comments /posts/3/relationships/comments].each { |path| assert_equal 404, get(path).first.status, path }
    assert_equal 404, send_data("PATCH", "/posts/3/relationships/comments", []).first.status
    operation = { op: "update", ref: { type: "posts", id: "3", relationship: "comments" }, data: [] }
    atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
    response = request("POST", "/operations", input: JSON.generate("atomic:operations": [operation]), "CONTENT_TYPE" => atomic)
    assert_equal 404, response.status, response.body
    assert_equal 1, count("comments WHERE post_id = 3")
  end

  def test_a_condition_of_the_row_holds_when_the_record_is_written
    hiding = resource_of(:PostResource) do
      has_many :comments, if: ->(row, _viewer) { row.title == "First" }, columns: %i[title]
      attribute :body, if: ->(row, team) { team.zero? || row.rating > 4 }, if_columns: %i[rating]
    end
    @app = serve do
      resource hiding, at: "posts"
      operations
    end
    emptied = { type: "posts", id: "3", relationships: { comments: { data: [] } } }
    written = { type: "posts", id: "2", attributes: { body: "Taken", rating: 5 } }
    atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
    [emptied, written].each do |data|
      operations = JSON.generate("atomic:operations": [{ op: "update", data: data }])
      [send_data("PATCH", "/posts/#{data[:id]}", data, "HTTP_AUTHORIZATION" => data[:attributes] ? "1" : "0").first,
       request("POST", "/operations", input: operations, "CONTENT_TYPE" => atomic,
                                      "HTTP_AUTHORIZATION" => data[:attributes] ? "1" : "0")].each do |response|
        assert_equal 403, response.status, response.body
        assert_includes response.body, "cannot be written"
      end
    end
    assert_equal [1, 0], [count("comments WHERE post_id = 3"), count("posts WHERE body = 'Taken'")]
    seen = { type: "posts", id: "1", attributes: { body: "Seen" }, relationships: { comments: { data: [{ type: "comments", id: "1" }] } } }
    assert_equal 200, send_data("PATCH", "/posts/1", seen, "HTTP_AUTHORIZATION" => "1").first.status
    assert_equal [1, 1], [count("comments WHERE post_id = 1"), count("posts WHERE body = 'Seen'")]
  end

  def test_members_that_the_viewer_cannot_see_stay_when_a_relationship_is_replaced
    seen = [{ "type" => "tags", "id" => "1" }]
    assert_equal seen, get("/posts/1/relationships/tags", "HTTP_AUTHORIZATION" => "1").last["data"]
    assert_equal 204, send_data("PATCH", "/posts/1/relationships/tags", seen, "HTTP_AUTHORIZATION" => "1").first.status
    assert_equal [1, 2], tags
    change = { type: "posts", id: "1", relationships: { tags: { data: [{ type: "tags", id: "3" }] } } }
    assert_equal 200, send_data("PATCH", "/posts/1", change, "HTTP_AUTHORIZATION" => "1").first.status
    assert_equal [2, 3], tags
    assert_equal 204, send_data("PATCH", "/posts/1/relationships/tags", []).first.status
    assert_empty tags
  end

  # The record is selected before and after the lock, and after the write.
  def test_the_detector_reports_no_check_of_a_write
    scoped = resource_of(:PostResource) { scope { |posts| posts.where(id: [1, 2]) } }
    @app = serve { resource scoped, at: "posts" }
    %w[Other Other].each do |title|
      change = { type: "posts", id: "2", attributes: { title: title } }
      findings = Castellan::Detect.watch(slow_ms: nil) { assert_equal 200, send_data("PATCH", "/posts/2", change).first.status }
      assert_empty findings
    end
    slow = Castellan::Detect.watch(slow_ms: 0) { assert_equal 204, request("DELETE", "/posts/2").status }
    assert(slow.any? { |finding| finding.kind == :slow_query && finding.fingerprint.match?(/\Aselect .*posts.* in \(\?\)/) })
  end

  def test_the_hidden_record_of_a_has_one_is_not_changed
    owners = owner_resource
    @app = serve { resource owners, at: "owners" }
    own = { type: "owners", id: "1", relationships: { post: { data: { type: "posts", id: "2" } } } }
    assert_nil get("/owners/1/relationships/post").last["data"]
    [send_data("PATCH", "/owners/1", own), send_data("PATCH", "/owners/1/relationships/post", nil)].each do |response,|
      assert_equal 403, response.status, response.body
    end
    assert_equal 1, count("posts WHERE id = 1 AND writer_id = 1")
    assert_equal 204, send_data("PATCH", "/owners/2/relationships/post", nil).first.status
    assert_equal 0, count("posts WHERE writer_id = 2")
  end

  def test_a_hidden_record_at_the_other_end_is_not_told_from_none
    all = resource_of(:PostResource) { scope { |posts| posts } }
    @app = serve { resource all, at: "posts" }
    journal.run("UPDATE posts SET writer_id = NULL WHERE id = 2")
    ["", "?include=posts", "?include=nothing", "?unknown=1", "?filter[name]=Ada", "?page[size]=1", "?fields[writers]=name"].each do |query|
      none, hidden = %w[2 3].map { |id| get("/posts/#{id}/writer#{query}", "HTTP_AUTHORIZATION" => "1").first }
      assert_equal [none.status, none.body], [hidden.status, hidden.body], query
    end
    assert_equal 400, get("/posts/3/writer?include=nothing", "HTTP_AUTHORIZATION" => "1").first.status
    assert_equal 200, get("/posts/1/writer?include=posts", "HTTP_AUTHORIZATION" => "1").first.status
  end

  def test_adding_and_removing_members_goes_through_update
    calls = []
    overriding = resource_of(:PostResource) do
      define_method(:update) do |record, attributes, viewer|
        calls << attributes.transform_values { |value| value.map(&:id).sort }
        super(record, attributes, viewer)
      end
    end
    @app = serve { resource overriding, at: "posts" }
    assert_equal 204, send_data("POST", "/posts/1/relationships/tags", [{ type: "tags", id: "3" }]).first.status
    assert_equal 204, send_data("DELETE", "/posts/1/relationships/tags", [{ type: "tags", id: "1" }]).first.status
    assert_equal [[{ tags: [1, 2, 3] }, { tags: [2, 3] }], [2, 3]], [calls, tags]
  end

  def test_members_that_are_hidden_from_the_viewer_cannot_be_written
    hiding = resource_of(:PostResource) { attribute :body, if: ->(team) { team.zero? } }
    @app = serve { resource hiding, at: "posts" }
    change = { type: "posts", id: "1", attributes: { body: "Seen" } }
    assert_equal 200, send_data("PATCH", "/posts/1", change).first.status
    response, = send_data("PATCH", "/posts/1", change, "HTTP_AUTHORIZATION" => "1")
    assert_equal 403, response.status, response.body
    misspelt = { type: "posts", id: "1", attributes: { bodi: "x" } }
    refute_includes send_data("PATCH", "/posts/1", misspelt, "HTTP_AUTHORIZATION" => "1").first.body, "body"
  end

  def test_a_hidden_member_that_reads_the_id_leaves_the_filter_and_the_sort_by_id
    hiding = resource_of(:PostResource) do
      attribute :body, if: ->(team) { team.zero? }
      attribute(:remark, columns: %i[id], if: ->(team) { team.zero? }) { |row| "No. #{row.id}" }
      filter :id, :body
      sort :id
    end
    @app = serve { resource hiding, at: "posts" }
    response, document = get("/posts?filter[id]=1&sort=-id", "HTTP_AUTHORIZATION" => "1")
    assert_equal [200, %w[1]], [response.status, document["data"].map { |one| one["id"] }], response.body
    assert_equal 400, get("/posts?filter[body]=x", "HTTP_AUTHORIZATION" => "1").first.status
  end

  def test_errors_suggest_no_member_that_an_if_hides_from_some_viewers
    hiding = resource_of(:PostResource) do
      attribute :body, if: ->(team) { team.zero? }
      attribute(:remark, columns: %i[body], if: ->(team) { team.zero? }) { |row| row.body } # no other resource of the type has it
      has_many :comments, if: ->(team) { team.zero? }
      filter :title, :body
      sort :body
    end
    @app = serve { resource hiding, at: "posts" }
    { "fields[posts]=remarc" => "remark", "filter[bodi]=x" => "body", "sort=bodi" => "body", "include=comment" => "comments" }
      .each do |query, hidden|
        response, = get("/posts?#{query}", "HTTP_AUTHORIZATION" => "1")
        assert_equal 400, response.status, query
        refute_includes response.body, hidden, query
      end
    assert_equal 200, get("/posts?fields[posts]=remark&filter[body][null]=true&sort=body&include=comments").first.status
  end

  def test_a_lock_column_must_not_be_null
    locked = resource_of(:PostResource) { writable :lock_version }
    @app = serve { resource locked, at: "posts" }
    response, = send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: { title: "Third", lock_version: nil } })
    assert_equal 422, response.status, response.body
  end

  def test_values_that_the_orm_would_write_as_null_are_refused
    { published_on: %w[2026-W05-1 2026-031 ---15 2026-02-30], published_at: %w[12:00:00 2026-031T10:00:00Z 2026-01-31T25:00:00Z],
      price: %w[1e999] }.each do |name, values|
      values.each do |value|
        response, = send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: { name => value } })
        assert_equal 422, response.status, "#{name} #{value}: #{response.body}"
      end
    end
    assert_equal 200, send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: {
                                  published_on: "2026-02-28", published_at: "2026-01-31T12:00:00.5+02:00", price: "12.5"
                                } }).first.status
  end

  def test_an_error_after_the_commit_is_neither_tried_again_nor_the_clients
    journal = self.journal
    attempts = 0
    late = resource_of(:TagResource) do
      define_method(:create) do |attributes, viewer|
        attempts += 1
        journal.after_commit { raise journal.busy }
        super(attributes, viewer)
      end
    end
    @app = serve { resource late, at: "tags" }
    error = assert_raises(StandardError) { send_data("POST", "/tags", { type: "tags", attributes: { name: "late" } }) }
    assert_kind_of Castellan::Write::Transaction::Committed, error
    assert_equal [1, 1], [attempts, count("tags WHERE name = 'late'")]
  end

  private

  # @return [Class] a resource of writers with one post each, of which the first is hidden
  def owner_resource
    models = journal.models
    declare_owners(models) unless models.const_defined?(:Owner, false)
    posts = resource_of(:PostResource) { scope { |relation| relation.where(id: [2, 3]) } }
    Class.new(Castellan::Resource) do
      model models.const_get(:Owner)
      type "owners"
      has_one :post, resource: posts
      writable :post
    end
  end

  def declare_owners(models)
    if models.const_defined?(:Base, false)
      models.const_set(:Owner, Class.new(models::Base) { self.table_name = "writers" })
      models::Owner.has_one :post, class_name: models::Post.name, foreign_key: :writer_id
    else
      models.const_set(:Owner, Class.new(Sequel::Model(models::DB[:writers]))).one_to_one :post, class: models::Post, key: :writer_id
    end
  end

  def tags = journal.rows("SELECT tag_id FROM taggings WHERE post_id = 1 ORDER BY tag_id").map { |row| row["tag_id"] }
  def count(from) = journal.rows("SELECT COUNT(*) AS number FROM #{from}").first["number"]
end

JournalRequests.on_every_database(UnseenContract)

# On PostgreSQL, where a row is locked after it was read: another transaction moves it out of the viewer's sight in between.
module MovedContract
  include JournalRequests

  def build = serve { |models| resource models::PostResource }

  def test_a_row_that_moves_out_of_sight_before_the_lock_is_neither_changed_nor_deleted
    change = ->(headers) { send_data("PATCH", "/posts/2", { type: "posts", id: "2", attributes: { title: "Taken" } }, **headers).first }
    linkage = ->(headers) { send_data("PATCH", "/posts/2/relationships/tags", [{ type: "tags", id: "3" }], **headers).first }
    [change, linkage, ->(headers) { request("DELETE", "/posts/2", **headers) }].each do |send|
      journal.run("UPDATE posts SET writer_id = 2 WHERE id = 2")
      assert_equal 404, moving { send.call("HTTP_AUTHORIZATION" => "1") }.status
    end
    assert_equal({ "title" => "Second", "writer_id" => 3 }, journal.rows("SELECT title, writer_id FROM posts WHERE id = 2").first)
    assert_empty journal.rows("SELECT * FROM taggings WHERE post_id = 2")
  end

  private

  # Moves the post while the request of the block waits for its lock.
  def moving(&block)
    other = PG.connect(journal.url)
    other.exec("BEGIN; UPDATE posts SET writer_id = 3 WHERE id = 2")
    thread = Thread.new(&block)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN " \
              "(SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
    deadline = Castellan::TestServers.now + 30
    until other.exec(waiting).getvalue(0, 0).to_i.positive?
      flunk "the request does not wait: #{thread.value.status}" if !thread.alive? || Castellan::TestServers.now > deadline
    end
    other.exec("COMMIT")
    thread.value
  ensure
    other&.close
  end
end

%i[active_record sequel].each do |orm|
  Object.const_set("MovedOn#{orm == :sequel ? "Sequel" : "ActiveRecord"}Test", Class.new(Minitest::Test) do
    include MovedContract

    define_method(:journal) do
      needs :postgres
      Journal.public_send(orm, :postgres)
    end
  end)
end
