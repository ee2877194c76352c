# frozen_string_literal: true

require "serve/journal_requests"
require "support/conformance"

# Statements of JSON:API 1.1 about every document and about unusual requests.
module FormatContract
  extend Castellan::Conformance::Covers
  include JournalRequests

  RESOURCE = %w[type id attributes relationships links meta].freeze

  def build
    linked = resource_of("PostResource") do
      self_links
      filter :title
    end
    serve do |models|
      jsonapi
      self_links
      resource linked
      %w[Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
    end
  end

  covers "additional-members", "required-top-level", "data-errors", "data-included", "resource-required-top-level",
         "resource-optional-top-level", "resource-id-type", "resource-id-type-types", "resource-unique", "resource-attributes-key",
         "resource-relationships-key", "resource-relationships-object", "resource-identifier-required-members", "meta-objects",
         "top-level-links", "top-level-links-members", "primary-data", "resource-linkage", "compound-documents-top-level-included"
  def test_documents_have_the_members_that_the_text_defines
    %w[/posts /posts?include=writer,tags,comments.post /posts/1 /posts/1?include=tags /posts/1/writer /posts/1/tags
       /posts/1/relationships/tags /posts/1/relationships/writer /posts/99 /posts?sort=x /nothing].each do |path|
      _, document = get(path)
      assert_empty document.keys - %w[data errors meta jsonapi links included], path
      assert_equal 1, document.keys.count { |key| %w[data errors].include?(key) }, path
      refute document.key?("included") unless document.key?("data")
      document.slice("meta", "links", "jsonapi").each_value { |member| assert_kind_of Hash, member }
      document["links"]&.each_value { |link| assert(link.nil? || link.is_a?(String)) }
      objects = [document["data"], document["included"]].flatten.compact
      assert_equal objects, objects.uniq { |object| object.values_at("type", "id") }, path
      objects.each { |object| check(object) }
    end
  end

  covers "resource-related-resource-link-change", "resource-related-resource-link"
  def test_related_links_do_not_change_with_the_relationship
    before = get("/posts/1").last["data"]["relationships"].transform_values { |relationship| relationship["links"] }
    send_data("PATCH", "/posts/1", type: "posts", id: "1", relationships: { writer: { data: nil }, tags: { data: [] } })
    after = get("/posts/1").last["data"]["relationships"]
    assert_equal [nil, []], [after["writer"]["data"], after["tags"]["data"]]
    assert_equal(before, after.transform_values { |relationship| relationship["links"] })
    before.each_value { |links| assert_equal 200, get(links["related"]).first.status, links["related"] }
  end

  covers "fetch-relationships", "fetch-relationships-response-200", "fetch-relationships-response-200-primary-data",
         "fetch-relationships-response-200-self-related", "fetch-relationships-response-exists-empty", "fetch-relationships-response-404",
         "fetch-relationships-other-error-details"
  def test_relationships_are_fetched_at_their_self_links
    post = get("/posts/1").last["data"]
    post["relationships"].each_value do |relationship|
      response, document = get(relationship["links"]["self"])
      assert_equal [200, relationship["data"], relationship["links"]], [response.status, document["data"], document["links"]]
    end
    assert_equal [200, []], get("/posts/2/relationships/tags").then { |response, document| [response.status, document["data"]] }
    journal.run("UPDATE posts SET writer_id = NULL WHERE id = 2")
    assert_equal [200, nil], get("/posts/2/relationships/writer").then { |response, document| [response.status, document["data"]] }
    %w[/posts/99/relationships/tags /posts/1/relationships/nothing].each do |path|
      response, document = get(path)
      assert_equal [404, "404"], [response.status, document["errors"].first["status"]], path
    end
  end

  def test_linkage_runs_no_code_of_the_related_records
    seen = []
    tags = resource_of("TagResource") { attribute(:loud) { |tag| seen << tag } }
    posts = resource_of("PostResource") { has_many :tags, resource: tags, lazy: true }
    @app = serve { [posts, tags].each { |one| resource one } }
    assert_equal %w[1 2], get("/posts/1/relationships/tags").last["data"].map { |tag| tag["id"] }
    assert_empty seen
  end

  covers "fetch-relationships-http-semantics", "fetch-responses-http-semantics", "fetch-relationships-other-status-codes"
  def test_linkage_has_validators_and_head
    etag = get("/posts/1/relationships/tags").first["etag"]
    assert_equal 304, get("/posts/1/relationships/tags", "HTTP_IF_NONE_MATCH" => etag).first.status
    head = request("HEAD", "/posts/1/relationships/tags")
    assert_equal [200, "", etag], [head.status, head.body, head["etag"]]
    assert_equal 406, get("/posts/1/relationships/tags", "HTTP_ACCEPT" => "application/vnd.api+json;charset=utf-8").first.status
  end

  covers "ignore-additional-members", "member-name-at-members-no-process", "member-name-at-members-ignore-for-definitions"
  def test_members_that_the_text_does_not_define_are_ignored
    document = { "@context" => 7, "unknown" => {}, "data" => { "@type" => "tags", "type" => "posts", "unknown" => 1,
                                                               "attributes" => { "title" => "Third", "@note" => "x" } } }
    response = request("POST", "/posts", input: JSON.generate(document), "CONTENT_TYPE" => JSON_API)
    assert_equal 201, response.status, response.body
    assert_equal "Third", JSON.parse(response.body)["data"]["attributes"]["title"]
  end

  covers "member-name-case"
  def test_names_are_case_sensitive
    assert_bad_parameter "fields[posts]", "/posts?fields[posts]=Title"
    assert_bad_parameter "filter[Title]", "/posts?filter[Title]=First"
    assert_bad_parameter "include", "/posts?include=Writer"
    response, document = send_data("POST", "/posts", type: "posts", attributes: { Title: "Third" })
    assert_equal [400, "/data/attributes/Title"], [response.status, document["errors"].first["source"]["pointer"]]
  end

  covers "error-general", "error-stop-processing", "error-object-members"
  def test_different_problems_have_the_general_status
    response, document = send_data("POST", "/posts", type: "posts", attributes: { titel: "x", rating: "many", writer_name: "x" })
    assert_equal [400, %w[400 422 403]], [response.status, document["errors"].map { |error| error["status"] }]
    assert_empty document["errors"].flat_map(&:keys).uniq - %w[id links status code title detail source meta]
  end

  covers "update-resource-relationship-200-response", "update-resource-200-status"
  def test_the_response_to_a_change_is_the_document_of_a_get
    response, document = send_data("PATCH", "/posts/1?include=writer&fields[posts]=title,writer", type: "posts", id: "1",
                                                                                                  attributes: { title: "Changed" })
    assert_equal [200, get("/posts/1?include=writer&fields[posts]=title,writer").last], [response.status, document]
  end

  private

  def check(object)
    assert_empty object.keys - RESOURCE
    assert_equal [String, String], object.values_at("type", "id").map(&:class)
    %w[attributes relationships links meta].each { |name| assert_kind_of Hash, object[name] if object.key?(name) }
    object["links"]&.each_value { |link| assert_kind_of String, link }
    object["relationships"]&.each_value do |relationship|
      assert relationship.keys.intersect?(%w[data links meta])
      [relationship["data"]].flatten.compact.each { |identifier| assert_equal %w[type id], identifier.keys }
    end
  end
end

JournalRequests.on_every_database(FormatContract)
