# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "document/library"
require "support/conformance"

# The JSON:API server on real databases, between two layers of Rack::Lint. Tests are named after the standard.
module AppContract
  extend Castellan::Conformance::Covers

  def setup
    library.fill
    @app = build
  end

  # --- fetching (JSON:API 1.1, "Fetching Data")

  covers "response-content-type", "fetch-response-code", "fetch-primary-data-collection", "sorting-default"
  def test_a_collection_is_an_array_of_resource_objects
    response, document = get("/articles")
    assert_equal [200, "application/vnd.api+json"], [response.status, response["content-type"]]
    assert_equal %w[7 6 5], ids(document)
    first = document["data"].first
    assert_equal({ "title" => "Title 7", "position" => 3, "author_name" => "Grace", "headline" => "3. Title 7" }, first["attributes"])
    assert_equal({ "data" => { "type" => "authors", "id" => "2" } }, first["relationships"]["author"])
    assert_equal response.body.bytesize.to_s, response["content-length"]
  end

  covers "logical-collection", "meta-object-members"
  def test_an_empty_collection_is_an_empty_array
    library.run("DELETE FROM articles")
    response, document = get("/articles")
    assert_equal [200, [], 0], [response.status, document["data"], document.dig("meta", "total")]
    assert_equal document["links"]["first"], document["links"]["last"]
  end

  covers "fetch-primary-data-single"
  def test_one_resource_is_one_object
    response, document = get("/articles/3")
    assert_equal [200, "3", %w[1]], [response.status, document["data"]["id"], document["data"]["relationships"]["tags"]["data"].map { |tag|
      tag["id"]
    }]
  end

  covers "fetch-responses-404", "fetch-responses-error-details", "error-object-key"
  def test_a_missing_resource_is_404_with_an_error_document
    %w[/articles/99 /articles/abc /articles/1%20 /articles/7abc /articles/99999999999999999999999 /articles/-1 /articles/1.5 /articles//
       /nothing /articles/1/headline /articles/%00 /articles/%ff /articles/%e2%82%ac /articles/a%2Fb /articles/%zz /stamps/abc /stamps/7
       /articles/1%0A].each do |path|
      response, document = get(path)
      assert_equal 404, response.status, path
      assert_equal %w[detail status title], document["errors"].first.keys.sort, path
    end
  end

  def test_an_id_of_raw_bytes_is_404
    env = Rack::MockRequest.env_for("/articles/1")
    env["PATH_INFO"] = "/articles/\xFF\xFE".b
    assert_equal 404, @app.call(env).first
    env["PATH_INFO"] = "/articles/\u20AC".b
    assert_equal 404, @app.call(env).first
  end

  def test_an_id_is_percent_decoded
    stamp = "0f8fad5b-d9cb-469f-a165-70867728950e"
    library.run("DELETE FROM stamps")
    library.run("INSERT INTO stamps (id, label) VALUES ('#{stamp}', 'First')")
    assert_equal stamp, get("/stamps/#{stamp}").last["data"]["id"]
    assert_equal stamp, get("/stamps/#{stamp.sub("-", "%2D")}").last["data"]["id"]
  end

  covers "fetch-responses-http-semantics"
  def test_head_is_get_without_the_body
    %w[/articles /articles/1 /articles/99 /nothing /articles?include=nope].each do |path|
      get, head = [get(path).first, request("HEAD", path)]
      assert_equal [get.status, get.headers, ""], [head.status, head.headers, head.body], path
    end
  end

  def test_other_methods_are_405_with_allow
    %w[POST PATCH DELETE PUT OPTIONS].each do |method|
      response = request(method, "/articles")
      assert_equal [405, "GET, HEAD"], [response.status, response["allow"]], method
    end
  end

  # --- content negotiation

  covers "response-not-acceptable"
  def test_the_media_type_with_other_parameters_alone_is_406
    assert_equal 406, get("/articles", "HTTP_ACCEPT" => "application/vnd.api+json; charset=utf-8").first.status
    assert_equal 406, get("/articles", "HTTP_ACCEPT" => 'application/vnd.api+json; ext="https://example.org/ext"').first.status
    assert_equal "accept", get("/articles", "HTTP_ACCEPT" => "text/html").first["vary"]
    assert_equal 200, get("/articles", "HTTP_ACCEPT" => "application/vnd.api+json; charset=utf-8, application/vnd.api+json").first.status
    assert_equal 200, get("/articles", "HTTP_ACCEPT" => 'application/vnd.api+json; profile="https://example.org/p"').first.status
  end

  covers "response-unsupported-media-type"
  def test_a_content_type_with_other_parameters_is_415
    assert_equal 415, get("/articles", "CONTENT_TYPE" => "application/vnd.api+json; charset=utf-8").first.status
    assert_equal 200, get("/articles", "CONTENT_TYPE" => "application/vnd.api+json").first.status
    assert_equal 200, get("/articles", "CONTENT_TYPE" => "text/plain; charset=utf-8").first.status
  end

  # --- include

  covers "compound-documents-allow", "compound-documents-full-linkage", "compound-documents-duplicates", "resource-unique"
  def test_included_resources_are_linked_and_unique
    _, document = get("/articles?include=author,tags&page[size]=5&page[number]=2")
    linked = document["data"].flat_map { |article|
      article["relationships"].values.flat_map { |relationship|
        [relationship["data"]].flatten.compact
      }
    }
    included = document["included"].map { |object| object.slice("type", "id") }
    assert_equal included.uniq, included
    assert_empty included - linked
    assert_includes included, { "type" => "tags", "id" => "2" }
  end

  covers "inclusion-include-parameter", "inclusion-include-parameter-value"
  def test_an_include_path_includes_each_step
    _, document = get("/articles/2?include=author.mentor")
    assert_equal %w[1 3], document["included"].map { |object| object["id"] }.sort
    assert_equal %w[authors], document["included"].map { |object| object["type"] }.uniq
  end

  covers "inclusion-unrequested"
  def test_included_is_present_if_and_only_if_the_client_sends_include
    assert_equal [], get("/articles?include=").last["included"]
    assert_nil get("/articles").last["included"]
    library.run("DELETE FROM taggings")
    assert_equal [], get("/articles?include=tags").last["included"]
  end

  # --- sparse fieldsets

  covers "sparse-fieldsets-parameter", "sparse-fieldsets-parameter-value", "sparse-fieldsets-additional-fields"
  def test_only_the_requested_fields_are_written
    _, document = get("/articles?fields[articles]=title,author&fields[authors]=name&include=author")
    assert_equal [%w[title], %w[author]], [document["data"][0]["attributes"].keys, document["data"][0]["relationships"].keys]
    assert_equal [%w[name], nil], [document["included"][0]["attributes"].keys, document["included"][0]["relationships"]]
  end

  def test_an_empty_fieldset_writes_no_field
    assert_equal [%w[type id]], get("/articles?fields[articles]=").last["data"].map(&:keys).uniq
  end

  def test_an_included_relationship_may_be_omitted_from_the_fields
    _, document = get("/articles?include=author&fields[articles]=title")
    assert_nil document["data"][0]["relationships"]
    assert_equal %w[1 2 3], document["included"].map { |author| author["id"] }.sort
  end

  # --- sort, page, filter

  covers "sorting-option", "sorting-parameter", "sorting-parameter-value", "sorting-multiple-fields",
         "sorting-multiple-fields-order", "sorting-order", "sorting-specified-order"
  def test_sort_is_in_the_order_of_the_fields_ascending_unless_minus
    assert_equal %w[1 2 3], ids(get("/articles?sort=title").last)
    assert_equal %w[7 6 5], ids(get("/articles?sort=-title,position").last)
    assert_equal %w[1 2 3], ids(get("/articles?sort=-position,position,-position").last)
  end

  covers "pagination", "pagination-links", "pagination-links-object", "pagination-keys", "pagination-order",
         "pagination-page-parameter", "fetch-url-support"
  def test_pages_link_to_their_neighbours_and_keep_the_query
    _, document = get("/articles?page[number]=2&sort=title&include=author&fields[articles]=title")
    rest = "include=author&fields%5Barticles%5D=title"
    links = document["links"]
    assert_equal %w[first last next prev], links.keys.sort
    links.each_value { |link| assert_match %r{\A/articles\?sort=title&#{rest}&page%5Bnumber%5D=\d&page%5Bsize%5D=3\z}, link }
    assert_equal({ "first" => "1", "prev" => "1", "next" => "3", "last" => "3" }, links.transform_values { |link|
      link[/number%5D=(\d)/, 1]
    })
    assert_equal({ "total" => 7 }, document["meta"])
    assert_equal %w[4 5 6], ids(document)
    assert_equal %w[7], ids(get(links["next"]).last)
    assert_equal %w[1 2 3], ids(get(links["prev"]).last)
  end

  covers "pagination-unavailable-link"
  def test_links_to_missing_pages_are_null
    assert_nil get("/articles").last["links"]["prev"]
    assert_nil get("/articles?page[number]=3").last["links"]["next"]
    beyond = get("/articles?page[number]=9").last
    assert_equal [[], nil, "/articles?page%5Bnumber%5D=3&page%5Bsize%5D=3"], [beyond["data"], *beyond["links"].values_at("next", "prev")]
  end

  def test_links_start_with_the_mount_path
    mounted = Rack::URLMap.new("/api" => @app)
    response = Rack::MockRequest.new(mounted).get("/api/articles/")
    assert_equal "/api/articles?page%5Bnumber%5D=1&page%5Bsize%5D=3", JSON.parse(response.body)["links"]["first"]
  end

  covers "filtering"
  def test_filters_narrow_and_are_counted
    _, document = get("/articles?filter[title]=Title 1,Title 5")
    assert_equal [%w[5 1], 2], [ids(document), document["meta"]["total"]]
    assert_equal %w[5 1], ids(get("/articles?filter[title][]=Title 1&filter[title][]=Title 5").last)
    assert_equal [], ids(get("/articles?filter[title]=%27%3B DROP TABLE articles;--").last)
  end

  # --- errors

  BAD = {
    "include=nope" => "include", "include=author," => "include", "include=author.nope" => "include",
    "include=#{"author.articles." * 3}author" => "include",
    "include=title" => "include", "include=%ff" => "include", "include=author%00" => "include",
    "include=#{"author," * 80}author" => "include",
    "fields[nope]=name" => "fields[nope]", "fields[articles]=nope" => "fields[articles]", "fields=title" => "fields",
    "fields[articles][a]=b" => "fields[articles]",
    "fields[articles]=%ff" => "fields[articles]", "fields[articles][]=%ff" => "fields[articles]", "fields[articles]" => "fields[articles]",
    "fields[%ff]=title" => "fields[?]",
    "sort=nope" => "sort", "sort=body" => "sort", "sort=%ff" => "sort", "sort[a]=b" => "sort", "sort=title," => "sort",
    "sort=--title" => "sort",
    "page=2" => "page", "page[number]=0" => "page[number]", "page[number]=-1" => "page[number]", "page[number]=x" => "page[number]",
    "page[number]=99999999999999999999" => "page[number]", "page[number]=999999999" => "page[number]", "page[size]=6" => "page[size]",
    "page[size]=0" => "page[size]", "page[limit]=1" => "page[limit]", "page[size][a]=1" => "page[size]",
    "page[number]=%ff" => "page[number]",
    "page[number]=1%0A2" => "page[number]", "page[number]=%D9%A1" => "page[number]",
    "filter=x" => "filter", "filter[nope]=1" => "filter[nope]", "filter[title]=%ff" => "filter[title]",
    "filter[title][]=a%00" => "filter[title]",
    "filter[title][a]=b" => "filter[title]", "filter[title]" => "filter[title]", "filter[title][][a]=b" => "filter[title]",
    "nope=1" => "nope", "Include=author" => "Include", "inclde=author" => "inclde", "camelCase=1" => "camelCase"
  }.freeze

  covers "inclusion-bad-request", "sorting-not-supported", "query-parameters-bad-request"
  def test_a_bad_parameter_is_400_that_names_it_before_any_query
    BAD.each do |query, parameter|
      sent = library.queries do
        response, document = get("/articles?#{query}")
        assert_equal 400, response.status, query
        error = document["errors"].first
        assert_equal ["400", parameter], [error["status"], error.dig("source", "parameter")], query
        assert error["title"] && error["detail"].valid_encoding?, query
      end
      assert_empty sent, query
    end
  end

  def test_an_invalid_query_string_is_400
    ["a%ZZ=1", "fields[a]=1&fields=2", "&" * 5000, (1..4500).map { |n|
      n.to_s(36)
    }.join("&")[0, 8000], "include#{"[a]" * 200}=x"].each do |query|
      sent = library.queries { assert_equal 400, get("/articles?#{query}").first.status, query[0, 30] }
      assert_empty sent
    end
  end

  # Lists of kitsu, Orbit and openapi-fetch are repeated parameters unless one sets them otherwise; Rack keeps the last.
  def test_a_repeated_parameter_is_400
    { "include=author&include=comments" => "include", "fields[articles]=title&sort=title&fields%5Barticles%5D=author" => "fields[articles]",
      "page[size]=1&page[number]=1&page[size]=1" => "page[size]", "sort=title&&sort=title" => "sort" }.each do |query, name|
      response, body = get("/articles?#{query}")
      assert_equal [400, name], [response.status, body["errors"].first["source"]["parameter"]], query
      commas = "; divide several values by commas" unless name == "page[size]"
      assert body["errors"].first["detail"].end_with?("may be written only once#{commas}"), query
    end
    lists = %w[include=author,comments include[]=author&include[]=comments].map { |query| get("/articles?#{query}").last["included"] }
    refute_empty lists.first
    assert_equal(*lists)
  end

  def test_a_query_that_is_nested_too_deep_has_an_error_with_the_limit
    body = get("/articles?filter#{"[a]" * 200}=1").last
    assert_equal "the query cannot be read: it is nested deeper than 32 levels", body["errors"].first["detail"]
  end

  def test_a_query_that_is_too_long_is_414
    assert_equal 414, get("/articles?include=#{"a" * 8200}").first.status
  end

  def test_errors_suggest_the_nearest_valid_name
    assert_includes get("/articles?include=auther").last["errors"][0]["detail"], "did you mean author?"
    assert_includes get("/articles?fields[articles]=titel").last["errors"][0]["detail"], "did you mean title?"
    assert_includes get("/articles?sort=posiiton").last["errors"][0]["detail"], "did you mean position?"
  end

  def test_a_filter_that_returns_no_scope_raises
    error = assert_raises(Castellan::ConfigurationError) { get("/articles?filter[broken]=1") }
    assert_match(/filter\(:broken\).*must return the narrowed scope, got NilClass/, error.message)
  end

  # --- caching

  def test_etag_gives_304_without_a_body
    %w[/articles /articles/1 /articles?include=author].each do |path|
      first = get(path).first
      second = request("GET", path, "HTTP_IF_NONE_MATCH" => %("other", W/#{first["etag"]}))
      assert_equal [304, ""], [second.status, second.body]
      assert_equal first.headers.slice("etag", "cache-control", "vary"), second.headers.slice("etag", "cache-control", "vary")
      assert_equal 200, request("GET", path, "HTTP_IF_NONE_MATCH" => '"other"').status
    end
  end

  # With an Array, Puma would send "content-length: 0": RFC 9110 §8.6.
  def test_the_body_of_a_304_and_of_the_response_to_head_is_no_array
    models = library.models
    app = Castellan.app do
      openapi title: "Library", version: "1"
      %w[Article Author Comment Tag Stamp].each { |name| resource models.const_get("#{name}Resource") }
    end
    %w[/articles /articles/1 /articles/1/author /articles/1/relationships/author /openapi.json].each do |path|
      ask = ->(method, fields = {}) { app.call(Rack::MockRequest.env_for(path, method: method, **fields)) }
      status, headers, = ask["GET"]
      not_modified = ask["GET", { "HTTP_IF_NONE_MATCH" => headers["etag"] }]
      head = ask["HEAD"]
      assert_equal [200, 200, 304], [status, head.first, not_modified.first], path
      assert_equal [[], false] * 2, [head, not_modified].flat_map { |answer| [answer.last.to_a, answer.last.respond_to?(:to_ary)] }, path
    end
  end

  def test_a_change_changes_the_etag
    before = get("/articles/1").first["etag"]
    library.run("UPDATE authors SET name = 'Barbara' WHERE id = 2")
    refute_equal before, get("/articles/1").first["etag"]
  end

  def test_if_match_is_412_if_the_representation_changed
    assert_equal 412, request("GET", "/articles/1", "HTTP_IF_MATCH" => '"other"').status
    assert_equal 200, request("GET", "/articles/1", "HTTP_IF_MATCH" => "*").status
  end

  def test_preconditions_of_a_missing_resource_are_ignored
    ["*", "* ", "\t*"].each { |any| assert_equal 404, request("GET", "/articles/99", "HTTP_IF_NONE_MATCH" => any).status }
    assert_equal 404, request("GET", "/articles/99", "HTTP_IF_MATCH" => "*").status
    assert_equal 404, request("GET", "/articles/99", "HTTP_IF_MATCH" => '"other"').status
    assert_equal 304, request("GET", "/articles/1", "HTTP_IF_NONE_MATCH" => "*").status
  end

  def test_without_authentication_documents_are_public
    response = get("/articles").first
    assert_equal ["public, no-cache", "accept"], [response["cache-control"], response["vary"]]
    assert_equal "no-store", get("/nothing").first["cache-control"]
  end

  # --- authentication and viewers

  covers "fetch-responses-other-status-codes"
  def test_without_a_viewer_it_is_401_with_a_challenge
    @app = authenticated
    response = request("GET", "/articles")
    assert_equal [401, 'Bearer realm="library"'], [response.status, response["www-authenticate"]]
    assert_empty(library.queries { request("GET", "/articles", "HTTP_AUTHORIZATION" => "nobody") })
  end

  def test_with_a_viewer_documents_are_private_and_of_the_viewers_scope
    @app = authenticated
    response, document = get("/articles", "HTTP_AUTHORIZATION" => "2")
    assert_equal ["private, no-cache", "accept, authorization"], [response["cache-control"], response["vary"]]
    assert_equal %w[7 4 1], ids(document)
    assert_equal %w[5 2], ids(get("/articles", "HTTP_AUTHORIZATION" => "3").last)
    assert_equal 404, get("/articles/2", "HTTP_AUTHORIZATION" => "2").first.status
  end

  def test_a_scope_that_returns_nil_does_not_serve_everything
    models = library.models
    @app = build { resource models::ArticleResource, scope: ->(viewer) { viewer && models::Article } }
    ["/articles", "/articles/1"].each do |path|
      error = assert_raises(Castellan::ConfigurationError) { get(path) }
      assert_includes error.message, "scope: of /articles returned nil; return a relation or dataset, an empty one where"
    end
  end

  # --- options that clients cannot change

  covers "inclusion-default"
  def test_fixed_options_cannot_be_requested
    models = library.models
    @app = build { resource models::ArticleResource, include: :author, representation: :summary }
    response, document = get("/articles")
    assert_equal [200, %w[title], %w[author]],
                 [response.status, document["data"][0]["attributes"].keys, document["data"][0]["relationships"].keys]
    assert_equal 3, document["included"].size
    assert_equal "include", get("/articles?include=tags").last["errors"][0]["source"]["parameter"]
    assert_equal "fields[articles]", get("/articles?fields[articles]=position").last["errors"][0]["source"]["parameter"]
    assert_equal [%w[author]], get("/articles?fields[articles]=author").last["data"].map { |article| article["relationships"].keys }.uniq
  end

  def test_the_nested_format_is_plain_json
    models = library.models
    @app = build { resource models::ArticleResource, at: "/plain/", format: :nested, include: :author }
    response, document = get("/plain/1")
    assert_equal ["application/json; charset=utf-8", 1, "Grace"], [response["content-type"], document["id"], document["author"]["name"]]
    assert_equal 404, get("/plain/99").first.status
    assert_equal 3, get("/plain").last.size
    assert_equal 406, get("/plain", "HTTP_ACCEPT" => "application/vnd.api+json").first.status
  end

  def test_linkage_and_related_records_of_the_nested_format_are_sent_as_json
    models = library.models
    author = Class.new(models::AuthorResource) { format :nested }
    articles = Class.new(models::ArticleResource) do
      format :nested
      belongs_to :author, resource: author
    end
    @app = build { resource articles, at: "plain" }
    json = { "HTTP_ACCEPT" => "application/json" }
    response, document = get("/plain/1/relationships/author", **json)
    assert_equal ["application/json", { "type" => "authors", "id" => "2" }], [response["content-type"][/[^;]+/], document["data"]]
    assert_equal [200, "Grace"], get("/plain/1/author", **json).then { |sent, read| [sent.status, read["name"]] }
    library.run("UPDATE articles SET author_id = NULL WHERE id = 1")
    response, = get("/plain/1/author", **json)
    assert_equal [200, "null", "application/json"], [response.status, response.body, response["content-type"]]
  end

  def test_errors_in_the_application_raise_when_it_is_built
    models = library.models
    {
      "needs a block" => -> { Castellan.app }, "is taken by" => -> { build { 2.times { resource models::TagResource } } },
      "did you mean author?" => -> { build { resource models::ArticleResource, include: :auther } },
      "did you mean summary?" => -> { build { resource models::ArticleResource, representation: :sumary } },
      "scope: must be callable" => -> { build { resource models::ArticleResource, scope: "Article" } },
      "resource takes a class with Castellan::Resource as superclass" => -> { build { resource models::Article } },
      "such as UserResource, got \"ArticleResource\"" => -> { build { resource "ArticleResource" } },
      "authenticate needs a block" => -> { build { authenticate } }
    }.each do |text, mistake|
      assert_includes assert_raises(Castellan::ConfigurationError, &mistake).message, text
    end
  end

  # --- faults and concurrency

  def test_an_attribute_that_raises_leaves_the_app_working
    broken = true
    loud = Class.new(library.models::TagResource) { attribute(:loud, columns: :name) { |row| broken ? raise("broken") : row.name.upcase } }
    @app = build { resource loud, at: "tags" }
    assert_equal "broken", assert_raises(RuntimeError) { get("/tags") }.message
    broken = false
    assert_equal %w[RUBY SQL], get("/tags").last["data"].map { |tag| tag["attributes"]["loud"] }
  end

  def test_concurrent_threads_get_the_same_responses
    paths = ["/articles", "/articles?include=author,tags", "/articles/3", "/articles?sort=-title&page[number]=2",
             "/articles?fields[articles]=title", "/articles/99"]
    expected = paths.to_h { |path| [path, get(path).first.body] }
    found = Array.new(8) { |number|
      Thread.new {
        Array.new(12) { |turn|
          paths[(number + turn) % paths.size].then { |path|
            [path, get(path).first.body]
          }
        }
      }
    }.flat_map(&:value)
    assert_equal 96, found.size
    found.each { |path, body| assert_equal expected[path], body }
  end

  def test_interleaved_fibers_get_the_same_responses
    expected = [get("/articles").first.body, get("/articles/3").first.body]
    fibers = ["/articles", "/articles/3"].map { |path|
      Fiber.new {
        Fiber.yield
        get(path).first.body
      }
    }
    fibers.each(&:resume)
    assert_equal expected.reverse, fibers.reverse.map(&:resume)
  end

  private

  def models = library.models

  def build(&block)
    models = library.models
    block ||= proc { %w[Article Author Comment Tag Stamp].each { |name| resource models.const_get("#{name}Resource") } }
    Rack::Lint.new(Rack::Lint.new(Castellan.app(&block)))
  end

  def authenticated
    models = library.models
    build do
      authenticate(challenge: 'Bearer realm="library"') { |env| env["HTTP_AUTHORIZATION"]&.to_i&.nonzero? }
      resource models::ArticleResource, scope: ->(viewer) { models::Article.where(author_id: viewer) }
    end
  end

  # Builds the environment without URI, which rejects much of what clients send.
  def request(method, path, **headers)
    env = Rack::MockRequest.env_for("/", method: method, **headers)
    path, query = path.gsub(" ", "%20").split("?", 2)
    Rack::MockResponse[*@app.call(env.merge("PATH_INFO" => path, "QUERY_STRING" => query.to_s))]
  end

  def get(path, **headers)
    response = request("GET", path, **headers)
    [response, response.body.empty? ? nil : JSON.parse(response.body)]
  end

  def ids(document) = document["data"].map { |object| object["id"] }
end

class AppOnActiveRecordTest < Minitest::Test
  include AppContract

  def library = Library.active_record(:sqlite)
end

class AppOnActiveRecordAndPostgresTest < Minitest::Test
  include AppContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
end

class AppOnSequelTest < Minitest::Test
  include AppContract

  def library = Library.sequel(:sqlite)

  # Grape takes an application that has this method for one of its own, and then all requests to Grape fail.
  def test_grape_can_mount_it
    resource = library.models::ArticleResource
    [Castellan.app { resource(resource) }, Castellan::Serve::LateApp.new { resource(resource) }].each do |app|
      refute_respond_to app, :endpoints
    end
  end
end

class AppOnSequelAndPostgresTest < Minitest::Test
  include AppContract

  def setup
    needs :postgres
    super
  end

  def library = Library.sequel(:postgres)
end
