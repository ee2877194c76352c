# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"
require "support/npm"

# `/openapi.json`: what is in it for whom, that it is valid, and that documents are as it says.
module OpenApiContract
  def setup
    journal.fill
  end

  def test_paths_and_methods_are_those_that_are_answered
    document = describe
    assert_equal ["3.1.0", { "title" => "Journal", "version" => "2.1" }, [{ "url" => "/api" }]],
                 document.values_at("openapi", "info", "servers")
    assert_equal %w[get post], document["paths"]["/posts"].keys
    assert_equal %w[parameters get patch delete], document["paths"]["/posts/{id}"].keys
    assert_equal %w[parameters get patch], document["paths"]["/posts/{id}/relationships/writer"].keys
    assert_equal %w[parameters get patch post delete], document["paths"]["/posts/{id}/relationships/tags"].keys
    assert_equal %w[parameters get], document["paths"]["/posts/{id}/tags"].keys
    refute_includes document["paths"]["/writers/{id}"].keys, "delete"
    assert_includes document["paths"]["/operations"]["post"]["responses"].keys, "401"
    answered = document["paths"].select { |path, _| path.scan("{").empty? && path != "/operations" }.keys
    assert_equal([200], answered.map { |path| call(path).status }.uniq)
  end

  def test_writes_list_the_statuses_of_their_errors
    posts, post = describe["paths"].values_at("/posts", "/posts/{id}")
    errors = [posts["post"], post["patch"], post["delete"]].map { |one| one["responses"].keys.grep(/4../) }
    assert_equal [%w[400 401 403 404 409 422]] * 3, errors
  end

  def test_parameters_are_those_that_are_declared
    paths = describe["paths"]
    found = paths["/posts"]["get"]["parameters"].to_h { |one| [one["name"], one["schema"]] }
    names = ->(operation) { operation.fetch("parameters").map { |one| one["name"] } }
    assert_equal [%w[locale fields[posts] include], %w[locale], %w[locale]],
                 [names[paths["/posts"]["post"]], names[paths["/posts/{id}"]["delete"]], names[paths["/operations"]["post"]]]
    assert_equal ["locale", "fields[posts]", "include", "sort", "filter[secret]", "page[number]", "page[size]"], found.keys
    assert_equal [%w[de en], %w[title -title], 50],
                 [found["locale"]["enum"], found["sort"]["items"]["enum"], found["page[size]"]["maximum"]]
  end

  def test_types_are_those_of_the_columns
    attributes = describe["components"]["schemas"]["posts"]["properties"]["attributes"]["properties"]
    assert_equal [{ "type" => "string" }, { "type" => %w[integer null] }, { "type" => %w[boolean null] },
                  { "type" => %w[string null], "format" => "date" }, { "type" => %w[string null], "format" => "date-time" }, {}],
                 attributes.values_at("title", "rating", "pinned", "published_on", "published_at", "writer_name")
  end

  def test_related_records_have_the_parameters_of_their_type
    models = journal.models
    app = Castellan.app do
      openapi
      resource Class.new(models::WriterResource) { has_many :posts, resource: Class.new(models::PostResource) { key_transform :dash } }
    end
    client = Rack::MockRequest.new(app)
    found = JSON.parse(client.get("/openapi.json").body)["paths"]["/writers/{id}/posts"]["get"]["parameters"]
    assert_equal %w[fields[posts] include sort page[number] page[size]], found.map { |one| one["name"] }
    assert_equal 200, client.get("/writers/1/posts?fields[posts]=writer-name&include=writer&sort=-title&page[size]=50").status
  end

  def test_every_operation_has_a_schema_for_other_errors
    document = describe
    operations = document["paths"].each_value.flat_map { |path| path.except("parameters").values }
    assert_equal [{ "$ref" => "#/components/responses/Error" }], operations.map { |one| one["responses"]["default"] }.uniq
    linkage = document["paths"]["/posts/{id}/relationships/tags"]["patch"]["responses"]
    assert_equal [%w[200 204], 406], [linkage.keys.grep(/2../).sort, call("/posts", "HTTP_ACCEPT" => "image/png").status]
  end

  def test_included_records_and_links_have_schemas
    schemas = describe["components"]["schemas"]
    read = schemas.keys.grep_v(/\.|error|included/)
    assert_equal read, schemas["included"]["anyOf"].map { |one| one["$ref"].delete_prefix("#/components/schemas/") }
    assert_equal %w[data links meta], schemas["posts"]["properties"]["relationships"]["properties"]["writer"]["properties"].keys
    assert_equal({ "type" => %w[string object null] }, schemas["posts"]["properties"]["links"]["additionalProperties"])
  end

  def test_names_of_filters_and_orders_are_those_of_the_members
    models = journal.models
    posts = Class.new(models::PostResource) do
      key_transform :camel_lower
      filter :published_on
      sort :published_on
    end
    client = Rack::MockRequest.new(Castellan.app { openapi and resource posts })
    found = JSON.parse(client.get("/openapi.json").body)["paths"]["/posts"]["get"]["parameters"]
    assert_includes found.map { |one| one["name"] }, "filter[publishedOn]"
    assert_includes found.find { |one| one["name"] == "sort" }["schema"]["items"]["enum"], "-publishedOn"
    assert_equal 200, client.get("/posts?filter[publishedOn]=2026-01-31&sort=-publishedOn").status
  end

  def test_pages_by_number_and_by_cursor_have_their_own_parameters
    cursors = Class.new(journal.models::TagResource) { page :cursor, size: 5, max_size: 10 }
    models = journal.models
    app = Castellan.app do
      openapi title: "Journal", version: "2.1"
      resource models::PostResource
      resource cursors, at: "cursors"
    end
    paths = JSON.parse(Rack::MockRequest.new(app).get("/openapi.json").body)["paths"]
    pages = %w[/posts /cursors].map { |path| paths[path]["get"]["parameters"].map { |one| one["name"] }.grep(/\Apage/) }
    assert_equal [%w[page[number] page[size]], %w[page[after] page[before] page[size]]], pages
  end

  def test_what_the_application_fixes_cannot_be_asked_for
    models = journal.models
    app = Castellan.app do
      openapi
      resource models::PostResource, fields: { posts: %i[title writer] }
      resource models::PostResource, at: "included", include: %i[writer]
      resource models::TagResource, at: "plain", format: :nested
    end
    client = Rack::MockRequest.new(app)
    paths = JSON.parse(client.get("/openapi.json").body)["paths"]
    names = %w[/posts /included].map { |path| paths[path]["get"]["parameters"].map { |one| one["name"] } & %w[fields[posts] include] }
    assert_equal [%w[include], %w[fields[posts]]], names
    assert_equal [true, false], %w[writer tags].map { |name| paths.key?("/posts/{id}/#{name}") }
    types = paths["/plain"]["get"]["responses"]["200"]["content"].keys
    assert_equal [["application/json"], 200], [types, client.get("/plain", "HTTP_ACCEPT" => types.first).status]
  end

  def test_a_viewer_sees_what_that_viewer_may_write
    writable = ->(**env) { describe(**env)["components"]["schemas"]["posts.create"]["properties"]["attributes"]["properties"].keys }
    assert_equal %w[slug], writable.call - writable.call("HTTP_AUTHORIZATION" => "2")
    assert_equal 401, call("/openapi.json", "HTTP_AUTHORIZATION" => "none").status
  end

  def test_filters_and_orders_that_reveal_hidden_columns_are_left_out
    models = journal.models
    hiding = Class.new(models::PostResource) do
      attribute :rating, if: ->(viewer) { viewer.zero? }
      attribute :slug, if: ->(row, _viewer) { row.pinned }, if_columns: %i[pinned]
      filter :stars, from: "rating"
      filter :address, from: "slug"
      filter :title
      sort :stars, from: "rating"
      sort :slug
    end
    app = Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"].to_i }
      openapi
      resource hiding
    end
    names = %w[0 1].map do |viewer|
      description = JSON.parse(Rack::MockRequest.new(app).get("/openapi.json", "HTTP_AUTHORIZATION" => viewer).body)
      parameters = description["paths"]["/posts"]["get"]["parameters"]
      parameters.map { |one| one["name"] }.grep(/filter/) + parameters.find { |one| one["name"] == "sort" }["schema"]["items"]["enum"]
    end
    assert_equal [%w[filter[stars] filter[title] title -title stars -stars], %w[filter[title] title -title]], names
  end

  def test_hidden_members_are_left_out
    all, few = [{}, { "HTTP_AUTHORIZATION" => "1" }].map { |env| describe(**env) }
    assert_equal [true, false], [all, few].map { |document| document.to_json.include?("secret") }
    assert_equal [true, false], [all, few].map { |document| document["paths"].key?("/posts/{id}/comments") }
    assert_equal [true, false], [all, few].map { |document|
      document["components"]["schemas"]["posts.create"]["properties"]["relationships"]["properties"].key?("comments")
    }
  end

  def test_the_response_is_revalidated
    response = call("/openapi.json")
    assert_equal ["application/json", "private, no-cache", "authorization"],
                 response.headers.values_at("content-type", "cache-control", "vary")
    assert_equal 304, call("/openapi.json", "HTTP_IF_NONE_MATCH" => response["etag"]).status
    assert_equal [405, "GET, HEAD"], [call("/openapi.json", "REQUEST_METHOD" => "POST").status,
                                      call("/openapi.json", "REQUEST_METHOD" => "POST")["allow"]]
    models = journal.models
    assert_equal 404, Rack::MockRequest.new(Castellan.app { resource models::TagResource }).get("/openapi.json").status
  end

  def test_a_public_validator_accepts_it_and_the_documents_fit
    large_runs_only
    skip "needs node and npm" unless Castellan::Npm.available?
    Dir.mktmpdir do |dir|
      write_files(dir, { "openapi.json" => describe.to_json, "samples.json" => JSON.generate(samples) })
      output, passed = Castellan::Npm.run("@seriousme/openapi-schema-validator@2.11.0", "ajv@8.20.0", "ajv-formats@3.0.1",
                                          script: File.join(__dir__, "open_api.mjs"),
                                          arguments: %w[openapi.json samples.json].map { |name| File.join(dir, name) })
      assert passed, output
      result = JSON.parse(output.lines.last)
      assert result["valid"], JSON.pretty_generate(result["errors"])
      assert_equal [true, true, true, false, false], result["checks"]
    end
  end

  private

  # A schema and a value that fits, or does not.
  def samples
    posts = JSON.parse(call("/posts").body)["data"]
    created = { type: "posts", attributes: { title: "New", rating: 3, published_on: "2026-01-31" },
                relationships: { writer: { data: nil } } }
    [["/components/schemas/posts", posts.first], ["/components/schemas/posts", posts.last], ["/components/schemas/posts.create", created],
     ["/components/schemas/posts.create", { **created, attributes: { rating: "3" } }],
     ["/components/schemas/posts.update", { type: "posts", id: "1", attributes: { slug: "x" } }]]
  end

  def describe(**env) = JSON.parse(call("/openapi.json", "SCRIPT_NAME" => "/api", **env).body)

  def call(path, **env) = Rack::MockResponse[*app.call(Rack::MockRequest.env_for(path).merge(env.transform_keys(&:to_s)))]

  def app
    @app ||= begin
      models = journal.models
      posts = Class.new(models::PostResource) do
        attribute :secret, from: "writer.name", if: ->(viewer) { viewer.zero? }
        has_many :comments, resource: models::CommentResource, if: ->(viewer) { viewer.zero? }
        filter :secret, from: "writer.name"
      end
      Rack::Lint.new(Castellan.app do
        authenticate { |env| env.fetch("HTTP_AUTHORIZATION", "0").then { |text| text == "none" ? nil : text.to_i } }
        openapi title: "Journal", version: "2.1"
        param :locale, in: %w[de en]
        resource posts
        %w[Writer Tag].each { |name| resource models.const_get("#{name}Resource") }
        operations
      end)
    end
  end
end

class OpenApiOnActiveRecordTest < Minitest::Test
  include OpenApiContract

  def journal = Journal.active_record(:sqlite)
end

class OpenApiOnSequelTest < Minitest::Test
  include OpenApiContract

  def journal = Journal.sequel(:sqlite)
end
