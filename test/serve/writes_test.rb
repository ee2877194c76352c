# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal_requests"
require "support/conformance"

# Creating, updating and deleting over HTTP, on real databases, between two layers of Rack::Lint.
module WritesContract
  extend Castellan::Conformance::Covers
  include JournalRequests

  WRITER = { writer: { data: { type: "writers", id: "2" } } }.freeze

  # --- creating (JSON:API 1.1, "Creating Resources")

  covers "create-support", "create-responses-201-status", "create-responses-201-location", "create-responses-201-document"
  def test_post_creates_a_record_and_returns_201_with_location
    response, document = send_data("POST", "/posts", type: "posts", attributes: { title: "Third", rating: 3, slug: "third" },
                                                     relationships: { writer: { data: { type: "writers", id: "2" } },
                                                                      tags: { data: [{ type: "tags", id: "1" },
                                                                                     { type: "tags", id: "3" }] } })
    assert_equal [201, JSON_API], [response.status, response["content-type"]]
    id = document["data"]["id"]
    assert_equal "/posts/#{id}", response["location"]
    assert_equal ["Third", 3, "Grace"], document["data"]["attributes"].values_at("title", "rating", "writer_name")
    assert_equal %w[1 3], document["data"]["relationships"]["tags"]["data"].map { |tag| tag["id"] }.sort
    assert_equal document, get("/posts/#{id}").last
    assert_equal response["etag"], get("/posts/#{id}").first["etag"]
  end

  def test_location_starts_with_the_mount_path
    response, = send_data("POST", "/tags", { type: "tags", attributes: { name: "rack" } }, "SCRIPT_NAME" => "/api")
    assert_match %r{\A/api/tags/\d+\z}, response["location"]
    response, = send_data("POST", "/tags", { type: "tags", attributes: { name: "roda" } }, "SCRIPT_NAME" => "/a\nx: é".b)
    assert_match %r{\A/a%0Ax:%20%C3%A9/tags/\d+\z}, response["location"], "a server decodes the path"
  end

  def test_post_may_include_and_choose_fields
    _, document = send_data("POST", "/posts?include=writer&fields[posts]=title,writer", type: "posts", attributes: { title: "Third" },
                                                                                        relationships: WRITER)
    assert_equal %w[title], document["data"]["attributes"].keys
    assert_equal %w[writers], document["included"].map { |object| object["type"] }
  end

  covers "create-accept-client-generated-ids", "create-client-generated-ids-key", "create-client-generated-ids-forbidden",
         "create-responses-204", "create-responses-409-exists", "create-responses-409-error-details"
  def test_a_client_id_is_accepted_where_id_is_writable
    assert_equal 201, send_data("POST", "/tags", type: "tags", id: "77", attributes: { name: "own" }).first.status
    assert_equal "own", get("/tags/77").last["data"]["attributes"]["name"]
    assert_refused 409, "/data/id", send_data("POST", "/tags", type: "tags", id: "77", attributes: { name: "own" })
    assert_refused 422, "/data/id", send_data("POST", "/tags", type: "tags", id: "x", attributes: { name: "own" })
    assert_refused 403, "/data/id", send_data("POST", "/posts", type: "posts", id: "78", attributes: { title: "Own" })
  end

  # Ember Data's serializeResources writes it into new records.
  def test_a_null_id_of_a_new_record_is_none
    %w[tags posts].each do |type|
      values = { name: "own", title: "Own" }.slice(type == "tags" ? :name : :title)
      response, document = send_data("POST", "/#{type}", type: type, id: nil, lid: "a", attributes: values)
      assert_equal [201, "/#{type}/#{document["data"]["id"]}"], [response.status, response["location"]]
    end
    assert_refused 400, "/data/id", send_data("PATCH", "/tags/1", type: "tags", id: nil, attributes: { name: "x" })
  end

  def test_the_id_is_no_attribute
    [nil, 7, "x"].each do |id|
      assert_refused 400, "/data/attributes/id", send_data("PATCH", "/tags/1", type: "tags", id: "1", attributes: { id: id })
      assert_refused 400, "/data/attributes/id", send_data("POST", "/tags", type: "tags", attributes: { name: "x", id: id })
    end
  end

  # --- updating (JSON:API 1.1, "Updating Resources")

  covers "modify-delete-support", "update-resource-attributes", "update-interpret-resource-attributes",
         "update-interpret-resource-relationships", "update-resource-204-status"
  def test_patch_changes_only_what_is_sent
    response, document = send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { rating: 2 })
    assert_equal [200, "First", 2], [response.status, *document["data"]["attributes"].values_at("title", "rating")]
    assert_equal document, get("/posts/1").last
  end

  covers "update-resource-relationships", "update-resource-relationship-value"
  def test_patch_replaces_relationships
    _, document = send_data("PATCH", "/posts/1", type: "posts", id: "1",
                                                 relationships: { writer: { data: nil }, tags: { data: [{ type: "tags", id: "3" }] } })
    assert_equal({ "data" => nil }, document["data"]["relationships"]["writer"])
    assert_equal %w[3], document["data"]["relationships"]["tags"]["data"].map { |tag| tag["id"] }
  end

  def test_null_clears_an_attribute
    assert_nil send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { rating: nil }).last["data"]["attributes"]["rating"]
  end

  def test_types_of_attributes_arrive_as_they_were_sent
    sent = { "price" => "12.50", "pinned" => true, "published_on" => "2026-01-31", "rating" => 1 }
    _, document = send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: sent)
    attributes = document["data"]["attributes"]
    assert_equal [true, "2026-01-31", 1], attributes.values_at("pinned", "published_on", "rating")
    assert_in_delta 12.5, attributes["price"].to_f
  end

  def test_an_attribute_only_for_creation_cannot_be_updated
    assert_refused 403, "/data/attributes/slug", send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { slug: "new" })
  end

  def test_overridden_methods_run_within_the_transaction
    @app = build { |models| resource models::OverridingPostResource, at: "posts" }
    _, document = send_data("POST", "/posts", type: "posts", attributes: { title: "Third" })
    assert_equal "Written by team 0", document["data"]["attributes"]["body"]
    assert_equal "broken", assert_raises(RuntimeError) {
      send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { title: "Broken" })
    }.message
    assert_equal "First", title(1)
  end

  # --- deleting (JSON:API 1.1, "Deleting Resources")

  covers "delete-204-status", "delete-404-status", "deleting-http-semantics"
  def test_delete_is_204_and_then_404
    response = request("DELETE", "/posts/1")
    assert_equal [204, ""], [response.status, response.body]
    assert_equal 404, get("/posts/1").first.status
    assert_equal 404, request("DELETE", "/posts/1").status
  end

  def test_a_form_of_another_website_cannot_delete
    app = @app
    @app = Rack::MethodOverride.new(@app)
    form = { "CONTENT_TYPE" => "application/x-www-form-urlencoded" }
    assert_equal 415, post_form("/posts/1", form).status
    assert_equal 415, post_form("/posts/1", {}).status # fetch sends a Blob without a type
    assert_equal 200, get("/posts/1").first.status
    assert_equal 204, request("POST", "/posts/1", "HTTP_X_HTTP_METHOD_OVERRIDE" => "DELETE").status
  ensure
    @app = app
  end

  def post_form(path, fields) = request("POST", path, input: "_method=delete", **fields)

  def test_only_the_first_mistakes_are_answered
    wrong = (1..5_000).to_h { |number| ["titel#{number}", number] }
    %i[attributes relationships].each do |member|
      response, document = send_data("PATCH", "/posts/1", { type: "posts", id: "1", member => wrong })
      assert_equal [400, 100], [response.status, document["errors"].size]
      assert_includes document["errors"].first["detail"], "posts has no #{member.to_s.delete_suffix("s")} \"titel1\""
    end
  end

  def test_a_member_in_the_wrong_object_is_recognized
    { attributes: { tags: [] }, relationships: { title: { data: nil } } }.each do |member, wrong|
      _, document = send_data("PATCH", "/posts/1", { type: "posts", id: "1", member => wrong })
      assert_match(/\Aposts has no (?:attribute "tags" \(it is a relationship\)|relationship "title" \(it is an attribute\))\z/,
                   document["errors"].first["detail"])
    end
  end

  def test_an_integer_beyond_all_floats_is_422
    [10**309, -10**400].each do |price|
      assert_refused 422, "/data/attributes/price", send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: { price: price } })
    end
  end

  def test_an_integer_beyond_its_column_is_422
    response, document = send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: { rating: 2**40 } })
    assert_equal 422, response.status
    assert_match(/\A(?:rating is out of the range of its column|(?:rating|the record) is refused by the database)\z/,
                 document["errors"].first["detail"])
  end

  # SQLite stores it.
  def test_a_decimal_beyond_its_column_is_named
    attributes = { price: "1234567.5", title: "Long enough", rating: 1 }
    response, document = send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: attributes })
    return assert_equal 200, response.status unless self.class.name.include?("Postgres")

    assert_refused 422, "/data/attributes/price", [response, document]
  end

  covers "deleting-other-status", "deleting-other-details"
  def test_delete_is_refused_by_a_block_a_callback_and_a_foreign_key
    refused = request("DELETE", "/comments/2", "HTTP_AUTHORIZATION" => "1")
    assert_equal [403, "403"], [refused.status, JSON.parse(refused.body)["errors"].first["status"]]
    journal.run("UPDATE posts SET title = 'Kept' WHERE id = 1")
    assert_equal 422, request("DELETE", "/posts/1").status
    used = request("DELETE", "/tags/1")
    assert_equal [409, "the record is used by others, or names one that does not exist"],
                 [used.status, JSON.parse(used.body)["errors"].first["detail"]]
    assert_equal 3, journal.rows("SELECT id FROM tags").size
  end

  # --- relationships (JSON:API 1.1, "Fetching Relationships", "Updating Relationships")

  def test_linkage_is_read_at_its_own_url
    assert_equal({ "data" => { "type" => "writers", "id" => "1" } }, get("/posts/1/relationships/writer").last)
    assert_equal [{ "type" => "tags", "id" => "1" }, { "type" => "tags", "id" => "2" }],
                 get("/posts/1/relationships/tags").last["data"].sort_by { |tag| tag["id"] }
    assert_equal 404, get("/posts/1/relationships/nothing").first.status
    assert_equal 404, get("/posts/99/relationships/tags").first.status
  end

  covers "fetch-primary-data-single", "fetch-url-support"
  def test_related_resources_are_read_at_their_own_url
    assert_equal "Ada", get("/posts/1/writer").last["data"]["attributes"]["name"]
    _, document = get("/posts/1/tags?fields[tags]=name")
    assert_equal %w[ruby sql], document["data"].map { |tag| tag["attributes"]["name"] }.sort
    journal.run("UPDATE posts SET writer_id = NULL WHERE id = 1")
    response, document = get("/posts/1/writer")
    assert_equal [200, { "data" => nil }], [response.status, document]
    assert_equal 404, get("/posts/99/writer").first.status
  end

  covers "respond-patch-to-one-relationship-link", "patch-to-one-data-member", "patch-to-one-response",
         "updating-relationship-204-status"
  def test_patch_of_a_to_one_relationship
    assert_equal 204, send_data("PATCH", "/posts/1/relationships/writer", type: "writers", id: "2").first.status
    assert_equal "2", get("/posts/1/relationships/writer").last["data"]["id"]
    assert_equal 204, send_data("PATCH", "/posts/1/relationships/writer", nil).first.status
    assert_nil get("/posts/1/relationships/writer").last["data"]
    assert_equal 405, send_data("POST", "/posts/1/relationships/writer", nil).first.status
  end

  covers "respond-patch-post-delete-to-many-relationship-link", "patch-post-delete-to-many-data-member",
         "patch-to-many-complete-replace", "post-to-many-add", "post-to-many-add-again", "post-to-many-response",
         "delete-to-many", "delete-to-many-success", "updating-relationship-204-status"
  def test_to_many_relationships_are_replaced_extended_and_reduced
    tags = ->(*ids) { ids.map { |id| { type: "tags", id: id } } }
    path = "/posts/1/relationships/tags"
    assert_equal 204, send_data("POST", path, tags["1", "3"]).first.status
    assert_equal %w[1 2 3], linked(path)
    assert_equal 204, send_data("POST", path, tags["3"]).first.status
    assert_equal 3, journal.rows("SELECT tag_id FROM taggings WHERE post_id = 1").size
    assert_equal 204, send_data("DELETE", path, tags["1", "3"]).first.status
    assert_equal %w[2], linked(path)
    assert_equal 204, send_data("DELETE", path, tags["1"]).first.status
    assert_equal 204, send_data("DELETE", path, tags["99", "2", "none"]).first.status # another client may have deleted them
    assert_empty linked(path)
    assert_equal 404, send_data("DELETE", path, [{ type: "tags", lid: "unknown" }]).first.status
    assert_equal 204, send_data("PATCH", path, tags["3", "3"]).first.status
    assert_equal %w[3], linked(path)
    assert_equal 204, send_data("PATCH", path, []).first.status
    assert_empty linked(path)
  end

  def test_one_to_many_relationships_are_changed_too
    path = "/posts/2/relationships/comments"
    assert_equal 204, send_data("POST", path, [{ type: "comments", id: "3" }]).first.status
    assert_equal %w[3], linked(path)
    assert_equal 204, send_data("PATCH", path, [{ type: "comments", id: "1" }, { type: "comments", id: "2" }]).first.status
    assert_equal %w[1 2], linked(path)
  end

  def test_an_id_that_is_longer_than_64_bits_is_404
    ["9223372036854775808", "-9223372036854775808", "9" * 30].each do |id|
      assert_equal 404, send_data("POST", "/posts/1/relationships/tags", [{ type: "tags", id: id }]).first.status
      comments = { comments: { data: [{ type: "comments", id: id }] } }
      assert_refused 404, "/data/relationships/comments/data/0",
                     send_data("POST", "/posts", { type: "posts", attributes: { title: "Title" }, relationships: comments })
    end
  end

  # --- who may

  covers "update-resource-404-status", "update-resource-404-related", "create-responses-404-related"
  def test_what_the_viewer_may_not_see_cannot_be_written
    team = { "HTTP_AUTHORIZATION" => "1" }
    assert_equal 404, send_data("PATCH", "/posts/3", { type: "posts", id: "3", attributes: { rating: 1 } }, **team).first.status
    assert_equal 404, request("DELETE", "/posts/3", **team).status
    assert_equal 404, send_data("POST", "/posts/3/relationships/tags", [{ type: "tags", id: "1" }], **team).first.status
    assert_equal 404, get("/posts/3/tags", **team).first.status
    assert_equal 404, get("/posts/3/relationships/tags", **team).first.status
    hidden = { writer: { data: { type: "writers", id: "3" } } }
    assert_refused 404, "/data/relationships/writer/data",
                   send_data("PATCH", "/posts/1", { type: "posts", id: "1", relationships: hidden }, **team)
    assert_equal "1", get("/posts/1/relationships/writer").last["data"]["id"]
  end

  def test_a_record_cannot_be_created_or_moved_out_of_sight
    team = { "HTTP_AUTHORIZATION" => "1" }
    before = journal.rows("SELECT id FROM posts").size
    assert_equal 403, send_data("POST", "/posts", { type: "posts", attributes: { title: "Nobody's" } }, **team).first.status
    assert_equal 403,
                 send_data("PATCH", "/posts/1", { type: "posts", id: "1", relationships: { writer: { data: nil } } }, **team).first.status
    assert_equal [before, "1"], [journal.rows("SELECT id FROM posts").size, get("/posts/1/relationships/writer").last["data"]["id"]]
  end

  covers "create-responses-403", "update-resource-403-status"
  def test_writable_may_depend_on_the_viewer
    attributes = { title: "Third", slug: "third" }
    writer = { writer: { data: { type: "writers", id: "3" } } }
    refused = send_data("POST", "/posts", { type: "posts", attributes: attributes, relationships: writer }, "HTTP_AUTHORIZATION" => "2")
    assert_refused 403, "/data/attributes/slug", refused
  end

  covers "update-resource-403-status", "updating-relationship-403-status"
  def test_authorize_decides_for_the_record
    journal.run("UPDATE posts SET title = 'Locked' WHERE id = 1")
    assert_equal 403, send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { rating: 1 }).first.status
    assert_equal 403, send_data("POST", "/posts/1/relationships/tags", [{ type: "tags", id: "3" }]).first.status
    assert_equal 5, journal.rows("SELECT rating FROM posts WHERE id = 1").first["rating"]
  end

  covers "update-relationship-http-semantics", "updating-relationship-other-status"
  def test_methods_that_are_not_declared_are_405_with_allow
    { ["PUT", "/posts"] => "GET, HEAD, POST", ["POST", "/posts/1"] => "GET, HEAD, PATCH, DELETE",
      ["DELETE", "/writers/1"] => "GET, HEAD, PATCH", ["POST", "/posts/1/writer"] => "GET, HEAD",
      ["PUT", "/posts/1/relationships/tags"] => "GET, HEAD, PATCH, POST, DELETE" }.each do |(method, path), allow|
      response = request(method, path)
      assert_equal [405, allow], [response.status, response["allow"]], "#{method} #{path}"
    end
  end

  covers "updating-relationship-200-status", "updating-relationship-200-response", "updating-relationship-other-details"
  def test_a_relationship_that_became_another_than_asked_is_returned
    models = journal.models
    changing = resource_of(:PostResource) do
      define_method(:update) do |record, attributes, viewer|
        kept = models::Tag.where(id: 2).first
        super(record, attributes.key?(:tags) ? { tags: attributes[:tags] | [kept] } : { writer: models::Writer.where(id: 2).first }, viewer)
      end
    end
    @app = serve { |_| resource changing, at: "posts" }
    response, document = send_data("PATCH", "/posts/1/relationships/tags", [{ type: "tags", id: "3" }])
    assert_equal [200, %w[2 3]], [response.status, document["data"].map { |one| one["id"] }.sort]
    assert_equal 204, send_data("POST", "/posts/1/relationships/tags", [{ type: "tags", id: "1" }]).first.status
    response, document = send_data("DELETE", "/posts/1/relationships/tags", [{ type: "tags", id: "2" }])
    assert_equal [200, %w[1 2 3]], [response.status, document["data"].map { |one| one["id"] }.sort]
    response, document = send_data("PATCH", "/posts/1/relationships/writer", { type: "writers", id: "1" })
    assert_equal [200, "2"], [response.status, document["data"]["id"]]
    assert_equal 204, send_data("PATCH", "/posts/1/relationships/writer", { type: "writers", id: "2" }).first.status
    assert_refused 404, "/data/0", send_data("POST", "/posts/1/relationships/tags", [{ type: "tags", id: "99" }])
  end

  # --- what is wrong in a document

  covers "create-single-resource", "create-type-member", "create-relationships-member", "create-responses-409-bad-type",
         "create-responses-other-status", "create-responses-other-error-details", "create-responses-404-related"
  def test_each_mistake_of_a_document_has_its_pointer
    {
      { type: "tags", attributes: { title: "Third" } } => [409, "/data/type"],
      { attributes: { title: "Third" } } => [400, "/data/type"],
      { type: "posts", attributes: { titel: "Third" } } => [400, "/data/attributes/titel"],
      { type: "posts", attributes: { writer: "Third" } } => [400, "/data/attributes/writer"],
      { type: "posts", attributes: { writer_name: "Third" } } => [403, "/data/attributes/writer_name"],
      { type: "posts", attributes: { rating: "many" } } => [422, "/data/attributes/rating"],
      { type: "posts", attributes: { title: "Third", rating: 10**30 } } => [422, "/data/attributes/rating"],
      { type: "posts", attributes: { pinned: "yes" } } => [422, "/data/attributes/pinned"],
      { type: "posts", attributes: { published_on: "2026-02-31" } } => [422, "/data/attributes/published_on"],
      { type: "posts", attributes: { title: 7 } } => [422, "/data/attributes/title"],
      { type: "posts", attributes: { title: "a\u0000b" } } => [422, "/data/attributes/title"],
      { type: "posts", attributes: { title: "ab" } } => [422, "/data/attributes/title"],
      { type: "posts", attributes: [] } => [400, "/data/attributes"],
      { type: "posts", relationships: { tags: { data: nil } } } => [400, "/data/relationships/tags/data"],
      { type: "posts", relationships: { tags: {} } } => [400, "/data/relationships/tags"],
      { type: "posts", relationships: { writer: { data: [] } } } => [400, "/data/relationships/writer/data"],
      { type: "posts", relationships: { writer: { data: { type: "tags", id: "1" } } } } => [422, "/data/relationships/writer/data/type"],
      { type: "posts", relationships: { tags: { data: [{ type: "tags", id: "99" }] } } } => [404, "/data/relationships/tags/data/0"],
      { type: "posts", relationships: { tags: { data: [{ type: "tags", id: 1 }] } } } => [400, "/data/relationships/tags/data/0/id"],
      { type: "posts", relationships: { tags: { data: [{ type: "tags" }] } } } => [400, "/data/relationships/tags/data/0"],
      { type: "posts", relationships: { tog: { data: [] } } } => [400, "/data/relationships/tog"],
      [] => [400, "/data"], "posts" => [400, "/data"], nil => [400, "/data"]
    }.each do |data, (status, pointer)|
      response, document = send_data("POST", "/posts", data)
      assert_equal [status, pointer], [response.status, document["errors"].first.dig("source", "pointer")],
                   "#{data.inspect}: #{response.body}"
    end
    assert_equal 3, journal.rows("SELECT id FROM posts").size
  end

  covers "error-stop-processing"
  def test_all_mistakes_are_named_at_once
    _, document = send_data("POST", "/posts", type: "posts", attributes: { titel: "x", rating: "many", pinned: 3 })
    assert_equal %w[/data/attributes/titel /data/attributes/rating /data/attributes/pinned],
                 document["errors"].map { |error| error["source"]["pointer"] }
  end

  covers "create-responses-409-error-details", "update-resource-other-status"
  def test_constraints_of_the_database_name_the_member
    assert_refused 409, "/data/attributes/slug", send_data("POST", "/posts", type: "posts", attributes: { title: "Third", slug: "first" })
    response, = send_data("POST", "/posts", type: "posts", attributes: { title: "Third", rating: 9 })
    assert_equal 422, response.status
    assert_refused 422, "/data/attributes/name", send_data("PATCH", "/tags/1", type: "tags", id: "1", attributes: { name: nil })
    assert_equal 3, journal.rows("SELECT id FROM posts").size
  end

  covers "update-resource-409-status"
  def test_a_unique_index_is_409_for_a_change
    served = resource_of(:PostResource) { writable :slug }
    @app = serve { |_| resource served, at: "posts" }
    assert_refused 409, "/data/attributes/slug", send_data("PATCH", "/posts/2", type: "posts", id: "2", attributes: { slug: "first" })
  end

  covers "update-resource-other-semantics", "update-patch-resource", "update-patch-resource-members", "update-resource-409-no-match",
         "update-resource-404-status",
         "update-resource-409-details"
  def test_the_id_of_the_document_is_that_of_the_url
    assert_refused 409, "/data/id", send_data("PATCH", "/posts/1", type: "posts", id: "2", attributes: { rating: 1 })
    assert_refused 400, "/data/id", send_data("PATCH", "/posts/1", type: "posts", attributes: { rating: 1 })
    assert_equal 404, send_data("PATCH", "/posts/99", type: "posts", id: "99", attributes: { rating: 1 }).first.status
  end

  covers "json-object", "required-top-level"
  def test_bodies_that_are_no_document_are_400
    ["", "{", "[]", "null", "7", '{"data":{"type":"posts","type":"tags"}}', "[" * 50, '{"data":NaN}', "\xFF\xFE", "{}",
     '{"data":{"type":"posts"', '{"meta":{}}'].each do |body|
      response = request("POST", "/posts", input: body, "CONTENT_TYPE" => JSON_API)
      assert_equal 400, response.status, body.inspect
      assert_equal JSON_API, response["content-type"]
    end
  end

  # With json 2.11 to 2.21, too, where a Hash of one's own as `object_class` does not see the first value.
  def test_a_member_that_occurs_twice_is_400_wherever_it_is
    read = ->(text) { Castellan::Write::Body.read({ "rack.input" => StringIO.new(text) }) }
    ['{"a":1,"a":1}', '{"b":[{"a":[{"b":1}],"a":1}]}', '{"a":{"x":1},"a":null}', '{"a":1,"\\u0061":2}', '{"a\\"":1,"a\\"":2,"b":"\\\\"}',
     '{"a":1,/*"*/"a":2,/*"*/"b":3}'].each do |text|
      assert_raises(Castellan::BadRequest, text) { read[text] }
    end
    plain = { "a:b" => [":", { "\"a\":" => "/*", "a" => "*/ \\" }, "//:\"", nil, 1.5], "a" => { "a" => { "a" => {} } } }
    assert_equal plain, read[JSON.pretty_generate(plain)]
  end

  # Some versions of json return strings that are not valid UTF-8, or other characters.
  def test_a_half_of_a_surrogate_pair_is_400
    read = ->(text) { Castellan::Write::Body.read({ "rack.input" => StringIO.new(%({"data":#{text}})) }) }
    ['"\udc00abcdef"', '"\\\\\ud800abcdef"', '{"\uD800\u0041":1}', '"\\\\ud800\udc00a"', '"\uDBFF\n\uDFFF"'].each do |text|
      error = assert_raises(Castellan::BadRequest, text) { read[text] }
      assert_equal [400, "surrogate"], [error.status, error.message[/surrogate/]], text
    end
    whole = '"\\\\ud800\u00e9\uD83D\ude00\ufffd\"\\\\udc00"'
    assert_equal({ "data" => "\\ud800é😀\uFFFD\"\\udc00" }, read[whole])
  end

  def test_a_body_that_is_too_long_is_413
    response = request("POST", "/posts", input: "x" * 1_048_577, "CONTENT_TYPE" => JSON_API)
    assert_equal 413, response.status
  end

  covers "response-unsupported-media-type", "create-http-semantics"
  def test_other_media_types_are_415_and_406
    body = JSON.generate(data: { type: "posts", attributes: { title: "Third" } })
    ["application/json", nil, "#{JSON_API}; charset=utf-8", "text/plain"].each do |type|
      assert_equal 415, request("POST", "/posts", input: body, "CONTENT_TYPE" => type).status, type.inspect
    end
    assert_equal 406, request("POST", "/posts", input: body, "CONTENT_TYPE" => JSON_API, "HTTP_ACCEPT" => "text/html").status
    { "gzip" => 415, "identity, br" => 415, "Identity" => 201 }.each do |coding, status|
      response = request("POST", "/posts", input: body, "CONTENT_TYPE" => JSON_API, "HTTP_CONTENT_ENCODING" => coding)
      assert_equal status, response.status, coding
    end
    assert_equal 4, journal.rows("SELECT id FROM posts").size
  end

  # --- preconditions (RFC 9110, section 13; RFC 6585)

  covers "update-resource-http-semantics"
  def test_if_match_prevents_a_lost_update
    etag = get("/posts/1").first["etag"]
    change = { type: "posts", id: "1", attributes: { rating: 1 } }
    assert_equal 200, send_data("PATCH", "/posts/1", change, "HTTP_IF_MATCH" => etag).first.status
    assert_equal 412, send_data("PATCH", "/posts/1", change, "HTTP_IF_MATCH" => etag).first.status
    assert_equal 412, request("DELETE", "/posts/1", "HTTP_IF_MATCH" => etag).status
    assert_equal 204, request("DELETE", "/posts/1", "HTTP_IF_MATCH" => get("/posts/1").first["etag"]).status
  end

  def test_if_none_match_refuses_a_change_of_what_the_client_has
    etag = get("/posts/1").first["etag"]
    change = { type: "posts", id: "1", attributes: { rating: 1 } }
    ["*", etag].each do |tags|
      assert_equal 412, send_data("PATCH", "/posts/1", change, "HTTP_IF_NONE_MATCH" => tags).first.status
      assert_equal 412, request("DELETE", "/posts/1", "HTTP_IF_NONE_MATCH" => tags).status
    end
    linkage = get("/posts/1/relationships/tags").first["etag"]
    [linkage, etag].each do |tag|
      assert_equal 412, send_data("PATCH", "/posts/1/relationships/tags", [], "HTTP_IF_NONE_MATCH" => tag).first.status
    end
    assert_equal 200, send_data("PATCH", "/posts/1", change, "HTTP_IF_NONE_MATCH" => '"other"').first.status
  end

  def test_if_match_can_be_required
    @app = build { |models| resource models::CarefulPostResource, at: "posts" }
    change = { type: "posts", id: "1", attributes: { rating: 1 } }
    response, document = send_data("PATCH", "/posts/1", change)
    assert_equal [428, { "header" => "If-Match" }], [response.status, document["errors"].first["source"]]
    assert_equal 428, send_data("PATCH", "/posts/1", change, "HTTP_IF_NONE_MATCH" => '"other"').first.status
    assert_equal 200, send_data("PATCH", "/posts/1", change, "HTTP_IF_MATCH" => get("/posts/1").first["etag"]).first.status
  end

  def test_the_etag_of_a_kept_record_outlives_changes_of_others
    kept do |get, patch|
      response, etag = get.call
      assert_equal 200, patch.call("2", "HTTP_IF_MATCH" => get.call("2").last).first.status
      assert_equal [response.body, etag], [get.call.first.body, get.call.last]
      assert_equal 304, request("GET", "/posts/1", "HTTP_IF_NONE_MATCH" => etag).status
      changed, = patch.call("1", "HTTP_IF_MATCH" => etag)
      assert_equal [200, get.call.last], [changed.status, changed["etag"]]
      assert_equal 412, patch.call("1", "HTTP_IF_MATCH" => etag).first.status
    end
  end

  def test_of_two_writers_with_one_etag_one_wins
    etag = get("/posts/1").first["etag"]
    statuses = Array.new(6) { |index|
      Thread.new {
        send_data("PATCH", "/posts/1", { type: "posts", id: "1", attributes: { body: "by #{index}" } },
                  "HTTP_IF_MATCH" => etag).first.status
      }
    }.map(&:value)
    assert_equal 1, statuses.count(200), statuses.inspect
    assert_empty statuses - [200, 412, 409, 503]
  end

  # --- faults

  covers "crud-atomic"
  def test_a_throw_rolls_everything_back
    journal = self.journal
    loud = Class.new(journal.models::PostResource) do
      define_method(:update) { |record, attributes, viewer| super(record, attributes, viewer) && throw(:away) }
    end
    @app = build { resource loud, at: "posts" }
    catch(:away) { send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { title: "Thrown" }) }
    assert_equal "First", title(1)
    assert_equal "First", Thread.new { title(1) }.value
  end

  def test_declarations_are_checked_when_the_app_is_built
    models = journal.models
    { "writer" => proc { writable :titel }, "on:" => proc { writable :title, on: :delete }, "create" => proc { authorize(:read) { true } },
      "block" => proc { authorize :create } }.each do |text, mistake|
      error = assert_raises(Castellan::ConfigurationError) do
        wrong = Class.new(models::PostResource, &mistake)
        build { resource wrong, at: "posts" }
      end
      assert_includes error.message, text
    end
  end

  private

  # Posts that are kept, with a GET that is answered twice, and a PATCH.
  def kept
    versions = journal.versions
    versions.install(%w[posts writers tags taggings comments])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    @app = build { |models| resource models::KeptPostResource, at: "posts" }
    yield ->(id = "1") { 2.times.map { get("/posts/#{id}").first }.last.then { |response| [response, response["etag"]] } },
      ->(id, **headers) { send_data("PATCH", "/posts/#{id}", { type: "posts", id: id, attributes: { body: headers.to_s } }, **headers) }
  ensure
    Castellan.keeper = nil
    versions&.uninstall(%w[posts writers tags taggings comments])
  end

  def build(&block)
    block ||= ->(models) { %w[Post Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") } }
    serve { |models| instance_exec(models, &block) }
  end

  def assert_refused(status, pointer, (response, document))
    assert_equal [status, pointer], [response.status, document["errors"].first.dig("source", "pointer")], response.body
  end

  def linked(path)
    get(path).last["data"].map { |identifier| identifier["id"] }.sort
  end

  def title(id)
    journal.rows("SELECT title FROM posts WHERE id = #{id}").first["title"]
  end
end

JournalRequests.on_every_database(WritesContract)

# Associations and plugins that change which values Sequel's records have.
class SequelPluginsWritesTest < Minitest::Test
  include JournalRequests

  def setup
    @database = Sequel.sqlite(keep_reference: false)
    @database.create_table(:albums) { primary_key :id }
    @database.create_table(:tracks) {
      primary_key :id
      Integer :album_id
    }
    @database.create_table(:genres) { primary_key :id }
    @database.create_table(:albums_genres) {
      Integer :album_id
      Integer :genre_id
      Integer :weight, default: 7
      unique %i[album_id genre_id]
    }
    @database[:albums].insert
    2.times { @database[:tracks].insert(album_id: 1) }
    3.times { @database[:genres].insert }
    [[1, 5], [2, 9]].each { |genre, weight| @database[:albums_genres].insert(album_id: 1, genre_id: genre, weight: weight) }
    all = resources(*models)
    @app = Rack::Lint.new(Castellan.app { all.each { |one| resource one } })
  end

  def teardown = @database.disconnect

  def test_members_of_an_association_with_columns_of_the_join_table_are_added_and_removed
    assert_equal [204, { 1 => 5, 2 => 9 }], relate("POST", 1)
    assert_equal [204, { 1 => 5, 2 => 9 }], relate("PATCH", 2, 1)
    assert_equal [204, { 1 => 5, 2 => 9, 3 => 7 }], relate("POST", 3, 2)
    assert_equal [204, { 1 => 5 }], relate("DELETE", 3, 2)
  end

  def test_members_of_a_one_to_many_association_with_further_columns_are_removed
    assert_equal 204, send_data("PATCH", "/albums/1/relationships/tracks", [{ type: "tracks", id: "2" }]).first.status
    assert_equal [[1, nil], [2, 1]], @database[:tracks].order(:id).select_map(%i[id album_id])
  end

  def test_a_record_of_static_cache_is_linked
    @database[:albums_genres].delete
    data = { type: "albums", id: "1", relationships: { genre: { data: { type: "genres", id: "3" } } } }
    response, document = send_data("PATCH", "/albums/1", data)
    assert_equal [200, "3"], [response.status, document.dig("data", "relationships", "genre", "data", "id")]
  end

  def test_a_model_may_define_destroy_without_arguments
    assert_equal 204, Rack::MockRequest.new(@app).delete("/tracks/1").status
    assert_equal [2], @database[:tracks].exclude(album_id: nil).select_map(:id)
  end

  private

  def relate(method, *ids)
    response, = send_data(method, "/albums/1/relationships/genres", ids.map { |id| { type: "genres", id: id.to_s } })
    [response.status, @database[:albums_genres].order(:genre_id).select_hash(:genre_id, :weight)]
  end

  def models
    genre = Class.new(Sequel::Model(@database[:genres])) { plugin :static_cache }
    track = Class.new(Sequel::Model(@database[:tracks])) { def destroy = update(album_id: nil) }
    album = Class.new(Sequel::Model(@database[:albums])) do
      one_to_many :tracks, class: track, key: :album_id, select: [Sequel[:tracks].*, Sequel.as(1, :one)]
      join = { class: genre, join_table: :albums_genres, left_key: :album_id, right_key: :genre_id }
      many_to_many :genres, **join, select: [Sequel[:genres].*, Sequel[:albums_genres][:weight]]
      one_through_one :genre, **join
    end
    [album, track, genre]
  end

  def resources(*models)
    tracks, genres = models.drop(1).zip(%w[tracks genres]).map { |one, name| resource(one, name) { deletable } }
    album = resource(models.first, "albums") do
      has_many :tracks, resource: tracks
      has_many :genres, resource: genres
      has_one :genre, resource: genres
      writable :tracks, :genres, :genre
    end
    [album, tracks, genres]
  end

  def resource(one, name, &block)
    Class.new(Castellan::Resource) do
      model one
      type name
      class_eval(&block)
    end
  end
end
