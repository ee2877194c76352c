# frozen_string_literal: true

require "test_helper"
require "action_controller"
require "action_controller/railtie"
require "rack/deflater"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# One resource of the journal that is kept.
module KeptPosts
  def self.of(models)
    return models::KeptPostResource if models.const_defined?(:KeptPostResource, false)

    models.const_set(:KeptPostResource, Class.new(models::PostResource) { cache :exact })
  end
end

# `include Castellan::Controller` in controllers of Rails, without and with views.
module ControllerContract
  JSON_API = "application/vnd.api+json"

  def setup
    journal.fill
  end

  def test_a_document_is_rendered_with_the_media_type_and_validators
    response = get(:index)
    assert_equal [200, JSON_API, "accept"], [response.status, response["content-type"], vary(response)]
    assert_equal %w[1 2 3], JSON.parse(response.body)["data"].map { |post| post["id"] }.sort
    assert_includes response["cache-control"], "private"
    again = get(:index, "HTTP_IF_NONE_MATCH" => response["etag"])
    assert_equal [304, "", nil], [again.status, again.body, again["content-type"]]
    assert_equal 200, get(:index, "HTTP_IF_NONE_MATCH" => '"other"').status
  end

  def test_a_document_is_a_member_of_a_hash
    response = get(:within_a_hash)
    expected = JSON.parse(KeptPosts.of(journal.models).render(viewer: 0))
    assert_equal [200, { "posts" => expected, "total" => 3 }], [response.status, JSON.parse(response.body)]
    assert_equal 3, expected["data"].size
  end

  def test_the_declared_cache_control_is_sent
    assert_equal "max-age=5, public, s-maxage=600, stale-while-revalidate=30", sorted(get(:declared_public)["cache-control"])
    assert_equal "max-age=900", get(:declared_public)["cdn-cache-control"]
    response = get(:declared)
    assert_equal ["max-age=5, private, stale-while-revalidate=30", nil], [sorted(response["cache-control"]), response["cdn-cache-control"]]
    assert_equal "no-cache, private", sorted(get(:index)["cache-control"])
    assert_equal "no-cache, public", sorted(get(:undeclared_public)["cache-control"])
  end

  def test_a_cache_control_of_the_action_stays_but_a_viewer_is_never_public
    assert_equal "max-age=60, public", sorted(get(:own_public)["cache-control"])
    assert_equal "max-age=60, private", sorted(get(:own_of_viewer)["cache-control"])
    assert_equal "max-age=5, private, stale-while-revalidate=30", sorted(get(:declared_of_viewer)["cache-control"])
  end

  def test_purge_names_the_records_of_a_public_document
    purge.install(declared)
    response = get(:purged)
    assert_equal response["surrogate-key"].split, response["cache-tag"].split(",")
    assert_equal "max-age=5, public, s-maxage=600, stale-while-revalidate=30", sorted(response["cache-control"])
    assert_nil get(:purged_of_viewer)["surrogate-key"]
    purge.uninstall(declared)
    assert_equal [nil, "no-cache, public"], [get(:purged)["surrogate-key"], sorted(get(:purged)["cache-control"])]
  ensure
    purge.uninstall(declared)
  end

  def test_pages_are_linked_from_the_request
    response = get(:index, "QUERY_STRING" => "page[size]=1&page[number]=2&sort=title&locale=de", "SCRIPT_NAME" => "/api")
    links = JSON.parse(response.body)["links"]
    assert_equal %w[first prev next last], links.keys & %w[first prev next last]
    assert_equal ["/api/posts?sort=title&locale=de&page[number]=3&page[size]=1"], [CGI.unescape(links["next"])]
    assert_nil JSON.parse(get(:index, "QUERY_STRING" => "page[size]=50").body)["links"]["next"]
  end

  def test_a_record_that_does_not_exist_is_404_with_an_error_document
    assert_equal "1", JSON.parse(get(:show, "QUERY_STRING" => "post=1").body)["data"]["id"]
    response = get(:show, "QUERY_STRING" => "post=99")
    assert_equal [404, JSON_API, ["errors"]], [response.status, response["content-type"], JSON.parse(response.body).keys]
  end

  def test_mistakes_of_clients_are_error_documents
    response = get(:index, "QUERY_STRING" => "include=nope")
    assert_equal [400, JSON_API, { "parameter" => "include" }],
                 [response.status, response["content-type"], JSON.parse(response.body)["errors"].first["source"]]
    response = get(:refuse)
    assert_equal [503, "1", "no-store"], [response.status, response["retry-after"], response["cache-control"]]
  end

  def test_media_types_are_negotiated
    assert_equal 406, get(:index, "HTTP_ACCEPT" => "#{JSON_API}; charset=utf-8").status
    assert_equal 406, get(:index, "HTTP_ACCEPT" => "text/html").status
    assert_equal 200, get(:index, "HTTP_ACCEPT" => "text/html, */*;q=0.1").status
    body = { input: "{}", "REQUEST_METHOD" => "POST" }
    assert_equal 415, get(:index, "CONTENT_TYPE" => "application/json", **body).status
    assert_equal 200, get(:index, "CONTENT_TYPE" => JSON_API, **body).status
  end

  def test_the_renderer_takes_documents_alone
    error = assert_raises(ArgumentError) { get(:wrong) }
    assert_includes error.message, "render jsonapi: takes a document, such as"
  end

  def test_the_renderer_of_another_gem_takes_its_objects
    ActionController::Renderers.add(:jsonapi) { |object, options| "#{object.class.name[/\w+\z/]} #{options[:status]}" }
    assert_equal "Post 200", get(:wrong).body
    assert_equal 3, JSON.parse(get(:index).body)["data"].size
  ensure
    ActionController::Renderers.remove(:jsonapi)
  end

  # With Rack::Deflater behind it, which compresses what is not compressed yet. Of a String in UTF-8, Zlib.gunzip cuts characters.
  def test_a_kept_document_is_sent_in_the_coding_that_the_client_accepts
    %i[kept kept_json kept_stale].each do |action|
      keeping do
        plain = get(action)
        2.times do
          response = get(action, "HTTP_ACCEPT_ENCODING" => "gzip")
          assert_equal ["gzip", "accept, accept-encoding"], [response["content-encoding"], vary(response)], action
          assert_equal plain.body, Zlib.gunzip(response.body.b), action
        end
        assert_nil get(action, "HTTP_ACCEPT_ENCODING" => "gzip;q=0, zip")["content-encoding"]
      end
    end
    assert_equal JSON_API, keeping { get(:kept, "HTTP_ACCEPT_ENCODING" => "gzip") }["content-type"]
  end

  def test_each_coding_has_a_tag_of_its_own
    keeping do
      plain, tag = get(:kept)["etag"], zipped(:kept)["etag"]
      assert_equal "#{plain[..-2]}-gzip\"", tag
      assert_equal [304, 200], [tag, plain].map { |known| zipped(:kept, "HTTP_IF_NONE_MATCH" => known).status }
      assert_match(/\A"[^"]+-gzip"\z/, zipped(:kept_json)["etag"])
      assert_equal 304, zipped(:kept_stale, "HTTP_IF_NONE_MATCH" => zipped(:kept_stale)["etag"]).status
    end
  end

  def test_a_vary_field_of_the_application_stays
    assert_equal "origin, accept", vary(get(:kept, "HTTP_ORIGIN" => "https://example.com"))
    keeping do
      %i[kept kept_json].each do |action|
        assert_equal "origin, accept, accept-encoding", vary(get(action, "HTTP_ORIGIN" => "https://example.com"))
      end
    end
  end

  def test_what_is_not_kept_is_compressed_by_the_middleware_alone
    response = get(:index, "HTTP_ACCEPT_ENCODING" => "gzip")
    assert_equal ["gzip", get(:index).body], [response["content-encoding"], Zlib.gunzip(response.body.b)]
    assert_equal "application/json; charset=utf-8", keeping { get(:kept_json, "HTTP_ACCEPT_ENCODING" => "gzip") }["content-type"]
    assert_includes keeping { get(:kept_json, "QUERY_STRING" => "callback=f") }.body, "f({"
  end

  def test_other_renderers_and_controllers_stay
    assert_equal ["application/json; charset=utf-8", { "a" => 1 }], [get(:plain)["content-type"], JSON.parse(get(:plain).body)]
    refute_includes parent._renderers, :jsonapi
  end

  private

  def journal = Journal.active_record(:sqlite)

  def get(action, **env)
    input = env.delete(:input)
    env = Rack::MockRequest.env_for("/posts", **(input ? { input: input } : {})).merge(env.transform_keys(&:to_s))
    app = controller.action(action)
    Rack::MockResponse[*(env["HTTP_ACCEPT_ENCODING"] ? Rack::Deflater.new(app) : app).call(env)]
  end

  # Without the field that newer Rails, such as 8.0.5.2, adds to each rendered response.
  def vary(response) = response["vary"].downcase.delete_suffix(", x-requested-with")

  def sorted(field) = field.split(", ").sort.join(", ")

  def declared
    models = journal.models
    return models::DeclaredTagResource if models.const_defined?(:DeclaredTagResource, false)

    models.const_set(:DeclaredTagResource, Class.new(models::TagResource) do
      cache_control max_age: 5, s_maxage: 600, stale_while_revalidate: 30, cdn: { max_age: 900 }
    end)
  end

  def purge = @purge ||= Castellan::Purge.new(journal.source, Struct.new(:tags) { def purge(tags) = tags }.new, again_after: nil)

  def zipped(action, **env) = get(action, "HTTP_ACCEPT_ENCODING" => "gzip", **env)

  def keeping
    before = Castellan.keeper
    @versions ||= journal.versions.tap { |versions| versions.install(%w[writers posts tags taggings comments]) }
    Castellan.keep(store: @store ||= Castellan::Store::MemoryStore.new, versions: @versions, compress: %w[gzip])
    yield
  ensure
    Castellan.keeper = before
  end

  def controller
    models, declared, purge = journal.models, self.declared, self.purge
    @controller ||= Class.new(parent) do
      include Castellan::Controller

      def self.name = "PostsController"

      before_action { response.headers["Vary"] = "Origin" if request.get_header("HTTP_ORIGIN") }

      define_method(:index) do
        render jsonapi: models::PostResource.document(query: request.query_parameters.except("locale"), viewer: 0)
      end
      define_method(:show) { render jsonapi: models::PostResource.document(id: params[:post], viewer: 0) }
      kept = KeptPosts.of(models)
      define_method(:kept) { render jsonapi: kept.document(viewer: 0) }
      define_method(:kept_json) { render json: kept.document(viewer: 0), callback: params[:callback] }
      define_method(:within_a_hash) { render json: { posts: kept.document(viewer: 0), total: 3 } }
      define_method(:kept_stale) do
        document = kept.document(viewer: 0)
        render json: document if stale?(**document.validators)
      end
      define_method(:undeclared_public) { render jsonapi: models::TagResource.document.public! }
      define_method(:declared) { render jsonapi: declared.document }
      define_method(:declared_public) { render jsonapi: declared.document.public! }
      define_method(:declared_of_viewer) { render jsonapi: declared.document(viewer: 7).public! }
      define_method(:own_public) { expires_in(60, public: true) && render(jsonapi: declared.document) }
      define_method(:own_of_viewer) { expires_in(60, public: true) && render(jsonapi: declared.document(viewer: 7)) }
      define_method(:purged) { render jsonapi: declared.document.public!, purge: purge }
      define_method(:purged_of_viewer) { render jsonapi: declared.document(viewer: 7).public!, purge: purge }
      define_method(:wrong) { render jsonapi: models::Post.first, status: 200 }
      def plain = render(json: { a: 1 })
      def refuse = raise(Castellan::BadRequest.new("later", status: 503))
    end
  end
end

class ApiControllerTest < Minitest::Test
  include ControllerContract

  def parent = ActionController::API
end

class BaseControllerTest < Minitest::Test
  include ControllerContract

  def parent = ActionController::Base
end
