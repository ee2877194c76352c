# frozen_string_literal: true

require "serve/journal_requests"
require "support/conformance"

# The members around the data: the jsonapi object, links of the document and of resources, and the application's own parameters.
module FrameContract
  extend Castellan::Conformance::Covers
  include JournalRequests

  def build(&options)
    linked = resource_of("PostResource") { self_links }
    writers = resource_of("WriterResource") { self_links "/v1/writers/" }
    options ||= proc do
      base_url "https://api.example.org/v1/"
      jsonapi implementation: "journal"
      self_links
      described_by "/openapi.json"
      param :locale, in: %w[de en]
      param "x-trace"
    end
    serve do |_models|
      instance_exec(&options)
      resource linked
      resource writers
    end
  end

  covers "optional-top-level", "top-level-links", "top-level-json-api-member", "json-api-type", "json-api-version",
         "json-api-meta"
  def test_documents_have_the_jsonapi_object_and_links
    _, document = get("/posts/1?fields[posts]=title")
    assert_equal({ "version" => "1.1", "meta" => { "implementation" => "journal" } }, document["jsonapi"])
    assert_equal({ "self" => "https://api.example.org/v1/posts/1?fields%5Bposts%5D=title", "describedby" => "/openapi.json" },
                 document["links"])
  end

  def test_links_of_a_page_begin_with_the_base_url
    links = get("/posts?page[size]=1").last["links"]
    assert_equal "https://api.example.org/v1/posts?page%5Bnumber%5D=2&page%5Bsize%5D=1", links["next"]
    assert_equal "https://api.example.org/v1/posts?page%5Bsize%5D=1", links["self"]
  end

  def test_without_base_url_links_begin_with_the_mount_path
    @app = build { self_links }
    links = get("/posts", "SCRIPT_NAME" => "/api").last["links"]
    assert_equal ["/api/posts", "/api/posts?page%5Bnumber%5D=1&page%5Bsize%5D=10"], links.values_at("self", "first")
    assert_equal "/api/posts/1", get("/posts/1", "SCRIPT_NAME" => "//api").last["links"]["self"]
  end

  def test_the_self_link_of_a_related_resource_is_the_requested_url
    @app = build { self_links }
    ["/posts/1/writer", "/posts/1/writer?fields%5Bwriters%5D=name", "/writers/1/posts"].each do |path|
      response, document = get(path)
      assert_equal [200, path], [response.status, document["links"]["self"]]
    end
  end

  # RFC 3986, section 3.4; axios does not escape brackets.
  def test_the_self_link_is_a_uri
    link = get(%(/posts?fields[posts]=title&locale=de&sort=-title&x-trace="a|b"%3Cé+^`).b).last["links"]["self"]
    assert_equal "/v1/posts?fields%5Bposts%5D=title&locale=de&sort=-title&x-trace=%22a%7Cb%22%3C%C3%A9+%5E%60",
                 link.delete_prefix("https://api.example.org")
    assert_equal link.split("?").last, get(link.delete_prefix("https://api.example.org/v1")).last["links"]["self"].split("?").last
  end

  def test_types_and_relationships_of_other_letters_have_uris
    tags = journal.models::TagResource
    sized = resource_of("PostResource") do
      type "größen"
      has_many :schlüssel, from: :tags, resource: tags
      self_links
    end
    @app = serve do |models|
      self_links
      [sized, tags, models::WriterResource, models::CommentResource].each { |one| resource one }
    end
    _, document = get("/gr%C3%B6%C3%9Fen?page[size]=1&fields[gr%C3%B6%C3%9Fen]=schl%C3%BCssel&include=schl%C3%BCssel")
    post = document["data"].first
    links = [document["links"], post["links"], post["relationships"]["schlüssel"]["links"]].flat_map(&:values).compact
    assert_includes links, "/gr%C3%B6%C3%9Fen/1/relationships/schl%C3%BCssel"
    links.each { |link| assert_equal [200, true], [get(link).first.status, link.ascii_only?], link }
    ["/größen/1/schlüssel".b, "/gr%c3%b6%c3%9fen"].each { |path| assert_equal 200, get(path).first.status }
  end

  covers "inclusion-include-parameter", "optional-top-level"
  def test_the_document_of_an_empty_relationship_has_the_members_of_others
    journal.run("UPDATE posts SET writer_id = NULL WHERE id = 2")
    full, empty = %w[1 2].map { |id| get("/posts/#{id}/writer?include=posts&locale=de").last }
    assert_equal [full.keys.sort, nil, []], [empty.keys.sort, *empty.values_at("data", "included")]
    assert_equal full["links"]["self"].sub("/1/", "/2/"), empty["links"]["self"]
    assert_equal full["jsonapi"], empty["jsonapi"]
    ["", "?include"].each { |query| refute_includes get("/posts/2/writer#{query}").last, "included" }
  end

  def test_without_declarations_documents_have_none_of_it
    @app = build { param :locale }
    assert_equal %w[data], get("/posts/1").last.keys
  end

  covers "resource-links", "resource-link-response", "resource-related-resource-link", "fetch-url-support", "fetch-relationships"
  def test_every_link_of_a_resource_leads_to_an_answer
    post = get("/posts/1").last["data"]
    assert_equal({ "self" => "/posts/1" }, post["links"])
    links = post["relationships"].values.flat_map { |relationship| relationship["links"].values_at("self", "related") }
    assert_includes links, "/posts/1/relationships/writer"
    assert_includes links, "/posts/1/writer"
    links.each { |link| assert_equal 200, get(link).first.status, link }
    assert_equal "/v1/writers/1", get("/writers/1").last["data"]["links"]["self"]
  end

  covers "create-responses-201-self", "create-responses-201-location"
  def test_the_location_of_a_new_resource_is_its_self_link
    response, document = send_data("POST", "/posts", type: "posts", attributes: { title: "Fourth" })
    assert_equal 201, response.status, response.body
    assert_equal document["data"]["links"]["self"], response["location"]
    @app = serve do |models|
      base_url "https://api.example.org/v1"
      resource models::TagResource
    end
    response, document = send_data("POST", "/tags", type: "tags", attributes: { name: "rack" })
    assert_equal "https://api.example.org/v1/tags/#{document["data"]["id"]}", response["location"]
  end

  covers "query-parameters-bad-request"
  def test_declared_parameters_are_accepted_and_stay_in_links
    assert_includes get("/posts?locale=de&x-trace=7&page[size]=1").last["links"]["next"], "locale=de"
    assert_bad_parameter "locale", "/posts?locale=fr", "(there is: de, en)"
    assert_bad_parameter "locale", "/posts?locale[]=de"
    assert_bad_parameter "locales", "/posts?locales=de", "did you mean locale?"
    assert_bad_parameter "x-trace", "/posts?x-trace=%00"
  end

  covers "query-parameters-bad-request"
  def test_other_parameters_are_refused_where_they_would_be_ignored
    tags = "/posts/1/relationships/tags"
    assert_bad_parameter "include", "#{tags}?include=tags"
    [["DELETE", "/posts/1"], ["PATCH", "/posts/1"], ["POST", "/posts"], ["PATCH", tags], ["DELETE", tags]].each do |method, path|
      response, document = send_data(method, "#{path}?locale=de&filter[title]=Second", [])
      assert_equal [400, "filter"], [response.status, document["errors"].first["source"]["parameter"]], method
    end
    assert_equal [200, 200], [get("/posts/1").first.status, get("#{tags}?locale=de").first.status]
    assert_equal 204, send_data("PATCH", "#{tags}?locale=de", []).first.status
    assert_equal 204, request("DELETE", "/posts/1?locale=de").status
  end

  def test_authenticate_finds_the_parameters
    seen = []
    posts = journal.models::PostResource
    @app = Castellan.app do
      param :locale
      authenticate { |env| seen << env["castellan.params"] && 0 }
      resource posts
    end
    get("/posts?locale=de&sort=title")
    get("/posts")
    assert_equal [{ "locale" => "de" }, {}], seen
  end

  def test_kept_documents_differ_by_their_frame
    kept = resource_of("PostResource") { cache :exact }
    plain, framed = Array.new(2) { kept.document(:all, keeper: nil).rendering }
    framed.frame('{"version":"1.1"}', {})
    refute_equal plain.values, framed.values
  end

  def test_wrong_declarations_are_refused
    { "base_url \"api\"" => proc { base_url "api" }, "is a parameter of JSON:API" => proc { param :sort },
      "write letters, digits" => proc { param "a[b]" },
      "param :locale: in: must be an Array such as %w[de en], got \"de\"" => proc { param :locale, in: "de" } }.each do |message, block|
      error = assert_raises(Castellan::ConfigurationError) { build(&block) }
      assert_includes error.message, message
    end
  end
end

JournalRequests.on_every_database(FrameContract)
