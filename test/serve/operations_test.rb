# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"
require "support/conformance"

# The Atomic Operations extension over HTTP, on real databases.
module OperationsContract
  extend Castellan::Conformance::Covers

  MEDIA_TYPE = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'

  def setup
    journal.fill
    models = journal.models
    @app = Rack::Lint.new(Rack::Lint.new(Castellan.app do
      authenticate { |env| env.fetch("HTTP_AUTHORIZATION", "0").to_i }
      %w[Post Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
      resource models::CarefulPostResource, at: "careful-posts"
      operations
    end))
  end

  covers "atomic-4", "atomic-5", "atomic-7", "atomic-8", "atomic-9", "atomic-11", "atomic-13", "atomic-14", "atomic-15",
         "atomic-23", "atomic-26", "atomic-29", "atomic-30", "atomic-31", "atomic-34", "atomic-35", "atomic-38", "atomic-39",
         "atomic-42", "atomic-43", "atomic-44", "atomic-45"
  def test_operations_are_performed_in_their_order
    response, document = operate(
      { op: "add", data: { type: "posts", lid: "a", attributes: { title: "Third" }, relationships: {
        tags: { data: [{ type: "tags", id: "1" }] }
      } } },
      { op: "add",
        data: { type: "comments", attributes: { body: "Own" }, relationships: { post: { data: { type: "posts", lid: "a" } } } } },
      { op: "update", ref: { type: "posts", lid: "a" }, data: { type: "posts", lid: "a", attributes: { rating: 3 } } },
      { op: "update", data: { type: "posts", id: "1", attributes: { title: "Changed" } } },
      { op: "remove", ref: { type: "comments", id: "1" } },
      { op: "update", ref: { type: "posts", id: "1", relationship: "writer" }, data: { type: "writers", id: "2" } },
      { op: "add", ref: { type: "posts", lid: "a", relationship: "tags" }, data: [{ type: "tags", id: "3" }] },
      { op: "remove", ref: { type: "posts", id: "1", relationship: "tags" }, data: [{ type: "tags", id: "1" }] }
    )
    assert_equal [200, MEDIA_TYPE], [response.status, response["content-type"]], response.body
    results = document["atomic:results"]
    assert_equal 8, results.size
    id = results.first["data"]["id"]
    assert_equal({ "type" => "posts", "id" => id }, results[1]["data"]["relationships"]["post"]["data"])
    assert_equal [3, "Changed"], [results[2]["data"]["attributes"]["rating"], results[3]["data"]["attributes"]["title"]]
    assert_equal [{}] * 4, results.last(4)
    assert_equal [2, 1], [count("taggings WHERE post_id = #{id}"), count("taggings WHERE post_id = 1")]
  end

  covers "atomic-3", "atomic-12", "atomic-17", "atomic-18", "atomic-21", "atomic-32"
  def test_a_failure_undoes_everything
    response, document = operate({ op: "add", data: { type: "tags", attributes: { name: "new" } } },
                                 { op: "remove", ref: { type: "comments", id: "1" } },
                                 { op: "update", data: { type: "posts", id: "1", attributes: { title: "x" } } })
    assert_equal [422, "/atomic:operations/2/data/attributes/title"],
                 [response.status, document["errors"].first["source"]["pointer"]]
    assert_equal [3, 3], [count("tags"), count("comments")]
  end

  covers "atomic-16", "atomic-33"
  def test_operations_without_results_are_204
    response, = operate({ op: "remove", ref: { type: "comments", id: "1" } })
    assert_equal [204, ""], [response.status, response.body]
    assert_equal 2, count("comments")
  end

  covers "atomic-6", "atomic-22", "atomic-28", "atomic-37", "atomic-41"
  def test_a_target_may_be_an_href
    operate({ op: "update", href: "/posts/1", data: { type: "posts", id: "1", attributes: { rating: 1 } } },
            { op: "add", href: "https://example.org/tags", data: { type: "tags", attributes: { name: "new" } } },
            { op: "add", href: "/posts/1/relationships/tags", data: [{ type: "tags", id: "3" }] })
    assert_equal [1, 4, 3],
                 [journal.rows("SELECT rating FROM posts WHERE id = 1").first["rating"], count("tags"), count("taggings WHERE post_id = 1")]
    ["/é/posts/1", "/%C3%A9/posts/1"].each do |href| # as the server has it, and as links have it
      response, = operate({ op: "update", href: href, data: { type: "posts", id: "1", attributes: { rating: 2 } } }, SCRIPT_NAME: "/é".b)
      assert_equal 200, response.status, response.body
    end
  end

  covers "atomic-19", "atomic-20", "atomic-24", "atomic-27", "atomic-36", "atomic-40", "atomic-46"
  def test_each_mistake_has_its_pointer
    post = { type: "posts", id: "1" }
    {
      { op: "replace", ref: post } => [400, "/op"], { op: "remove" } => [400, "/data"],
      { op: "add", ref: { type: "tags" } } => [400, "/data"], { op: "add", href: "/tags", data: [{}] } => [400, "/data"],
      { op: "remove", ref: { type: "posts" } } => [400, ""],
      { op: "remove", ref: post, data: [{ type: "tags", id: "1" }] } => [400, "/data"],
      { op: "remove", href: "/posts/1", data: { type: "tags", id: "1" } } => [400, "/data"],
      { op: "remove", ref: post, href: "/posts/1" } => [400, ""], { op: "remove", ref: { type: "nothing", id: "1" } } => [404, "/ref/type"],
      { op: "remove", ref: { type: "posts", id: "99" } } => [404, ""], { op: "remove", ref: { type: "posts", lid: "a" } } => [404, ""],
      { op: "remove", href: "/nothing/1" } => [404, "/href"],
      { op: "remove", href: "/posts/1/writer" } => [404, "/href"],
      { op: "update", href: "/posts/1/links/tags", data: [] } => [404, "/href"],
      { op: "remove", ref: { type: 1, id: "1" } } => [400, "/ref"],
      { op: "update", ref: { **post, relationship: "nothing" }, data: [] } => [404, "/ref/relationship"],
      { op: "update", ref: { **post, relationship: "tags" } } => [400, ""],
      { op: "add", ref: { **post, relationship: "writer" }, data: nil } => [400, ""],
      { op: "update", href: "/careful-posts/1", data: { **post, attributes: {} } } => [403, ""], 7 => [400, ""]
    }.each do |operation, (status, pointer)|
      response, document = operate(operation)
      wanted = pointer && "/atomic:operations/0#{pointer}"
      assert_equal [status, wanted], [response.status, document["errors"].first.dig("source", "pointer")].first(2),
                   "#{operation}: #{response.body}"
    end
  end

  def test_a_null_id_of_a_new_record_is_none
    response, document = operate({ op: "add", data: { type: "tags", id: nil, lid: "a", attributes: { name: "new" } } })
    assert_equal [200, "new"], [response.status, document["atomic:results"].first["data"]["attributes"]["name"]]
  end

  def test_a_lid_names_one_resource
    tag = { op: "add", data: { type: "tags", lid: "a", attributes: { name: "new" } } }
    response, document = operate(tag, tag)
    assert_equal [400, "/atomic:operations/1/data/lid", 0],
                 [response.status, document["errors"].first.dig("source", "pointer"), count("tags WHERE name = 'new'")]
    assert_equal 200, operate(tag, { op: "remove", ref: { type: "tags", lid: "a" } }, tag).first.status
  end

  def test_several_new_records_need_no_lid
    tag = { op: "add", data: { type: "tags", attributes: { name: "new" } } }
    assert_equal [200, 2], [operate(tag, tag).first.status, count("tags WHERE name = 'new'")]
  end

  def test_a_lid_is_kept_when_a_record_of_another_type_with_the_same_id_is_removed
    response, document = operate({ op: "add", data: { type: "tags", lid: "a", attributes: { name: "new" } } },
                                 { op: "add", data: { type: "comments", lid: "b", attributes: { body: "new" } } },
                                 { op: "remove", ref: { type: "comments", lid: "b" } },
                                 { op: "update", data: { type: "tags", lid: "a", attributes: { name: "newer" } } })
    assert_equal 200, response.status, response.body
    assert_equal 1, document["atomic:results"].filter_map { |result| result.dig("data", "id") }.uniq.size
  end

  # Its lid names the record as it is now, not as it was when it was created.
  def test_an_operation_sees_what_others_have_changed_of_a_record_with_a_lid
    comments = [1, 2].map { |id| { type: "comments", id: id.to_s } }
    local = { type: "posts", lid: "a", relationship: "comments" }
    response, document = operate(
      { op: "add", data: { type: "posts", lid: "a", attributes: { title: "Third" }, relationships: { comments: { data: comments } } } },
      { op: "add", ref: { type: "posts", id: "1", relationship: "comments" }, data: comments.first(1) },
      { op: "update", ref: local, data: comments }
    )
    assert_equal 200, response.status, response.body
    assert_equal 2, count("comments WHERE post_id = #{document["atomic:results"].first["data"]["id"]}")
  end

  def test_results_and_linkage_of_a_resource_in_another_format_are_json_api
    models = journal.models
    @app = Castellan.app do
      resource models::TagResource
      resource models::PostResource, format: :nested
      operations
    end
    _, document = operate({ op: "add", data: { type: "posts", attributes: { title: "Plain" },
                                               relationships: { tags: { data: [{ type: "tags", id: "1" }] } } } })
    created = document["atomic:results"].first["data"]
    assert_equal %w[posts Plain], [created["type"], created["attributes"]["title"]]
    response = Rack::MockRequest.new(@app).get("/posts/#{created["id"]}/relationships/tags")
    assert_equal [200, [{ "type" => "tags", "id" => "1" }]], [response.status, JSON.parse(response.body)["data"]]
  end

  covers "atomic-1", "atomic-2"
  def test_documents_that_have_no_operations_are_400
    [{}, { "atomic:operations" => {} }, { "atomic:operations" => [] }, { "atomic:operations" => [{}], "data" => nil }].each do |document|
      assert_equal 400, request(document).status, document.inspect
    end
    errors = JSON.parse(request({ "atomic:operations" => [nil] }).body)["errors"]
    assert_equal %w[/atomic:operations/0], errors.map { |error| error.dig("source", "pointer") }
  end

  covers "atomic-10"
  def test_the_extension_is_negotiated
    document = { "atomic:operations" => [{ op: "remove", ref: { type: "comments", id: "1" } }] }
    assert_equal 415, request(document, "CONTENT_TYPE" => "application/vnd.api+json").status
    assert_equal 415, request(document, "CONTENT_TYPE" => 'application/vnd.api+json;ext="https://example.org/other"').status
    assert_equal 406, request(document, "HTTP_ACCEPT" => 'application/vnd.api+json;ext="https://example.org/other"').status
    assert_equal 405, request(document, "REQUEST_METHOD" => "PATCH").status
    assert_equal 400, request(document, "QUERY_STRING" => "include=post").status
    removal = { "atomic:operations" => [{ "op" => "remove", "href" => "/tags/1?filter[name]=none" }] }
    assert_equal 400, request(removal).status, "it would remove the record whatever its name"
    assert_equal 204, request(document, "HTTP_ACCEPT" => MEDIA_TYPE).status
    assert_equal 415, request({ "data" => { "type" => "tags", "attributes" => { "name" => "new" } } }, "PATH_INFO" => "/tags").status
  end

  def test_what_the_viewer_may_not_see_cannot_be_written
    response, = operate({ op: "remove", ref: { type: "posts", id: "3" } }, "HTTP_AUTHORIZATION" => "1")
    assert_equal 404, response.status
    response, = operate({ op: "update", ref: { type: "posts", id: "1", relationship: "writer" }, data: { type: "writers", id: "3" } },
                        "HTTP_AUTHORIZATION" => "1")
    assert_equal [404, 3], [response.status, count("posts")]
  end

  def test_an_error_of_the_application_is_raised_as_it_is
    post, tag = journal.models::PostResource, journal.models::TagResource
    @app = Castellan.app do
      resource post
      resource tag, scope: ->(_viewer) { raise KeyError, "of the application" }
      operations
    end
    error = assert_raises(KeyError) do
      operate({ op: "update", data: { type: "posts", id: "1", attributes: { rating: 1 } } },
              { op: "remove", ref: { type: "tags", id: "1" } })
    end
    assert_equal ["of the application", 5], [error.message, journal.rows("SELECT rating FROM posts WHERE id = 1").first["rating"]]
  end

  private

  def operate(*operations, **headers)
    response = request({ "atomic:operations" => operations }, **headers)
    [response, response.body.empty? ? nil : JSON.parse(response.body)]
  end

  def request(document, **headers)
    env = Rack::MockRequest.env_for("/operations", method: "POST", input: JSON.generate(document))
    Rack::MockResponse[*@app.call(env.merge({ "CONTENT_TYPE" => MEDIA_TYPE }, headers.transform_keys(&:to_s)))]
  end

  def count(from)
    journal.rows("SELECT COUNT(*) AS number FROM #{from}").first["number"]
  end
end

class OperationsOnActiveRecordTest < Minitest::Test
  include OperationsContract

  def journal = Journal.active_record(:sqlite)
end

class OperationsOnActiveRecordAndPostgresTest < Minitest::Test
  include OperationsContract

  def setup
    needs :postgres
    super
  end

  def journal = Journal.active_record(:postgres)
end

class OperationsOnSequelTest < Minitest::Test
  include OperationsContract

  def journal = Journal.sequel(:sqlite)
end

class OperationsOnSequelAndPostgresTest < Minitest::Test
  include OperationsContract

  def setup
    needs :postgres
    super
  end

  def journal = Journal.sequel(:postgres)
end
