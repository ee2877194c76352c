# frozen_string_literal: true

require "test_helper"
require "nokogiri"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"
require "support/browsing"

# Documents as pages for people: what is on them, that values are escaped, and how Chromium shows them.
class PagesTest < Minitest::Test
  include Castellan::Browsing

  BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
  SCRIPT = %(<script>alert(1)</script>" onmouseover="x" 'javascript:)

  def setup
    Journal.sequel(:sqlite).fill
  end

  def test_a_browser_gets_a_page_and_a_client_the_document
    assert_equal "text/html; charset=utf-8", get("/posts")["content-type"]
    [nil, "*/*", "application/vnd.api+json", "application/vnd.api+json, text/html;q=0.5", "text/html;q=0"].each do |accept|
      refute_includes get("/posts", "HTTP_ACCEPT" => accept)["content-type"], "html", accept.inspect
    end
    assert_equal 406, Rack::MockResponse[*app(pages: false).call(env("/posts", "HTTP_ACCEPT" => "text/html"))].status
    assert_equal 405, get("/", "REQUEST_METHOD" => "POST").status
    assert_equal ["", 200], get("/posts", "REQUEST_METHOD" => "HEAD").then { |response| [response.body, response.status] }
  end

  def test_a_list_with_cursors_is_a_page_too
    paged = Class.new(Journal.sequel(:sqlite).models::TagResource) { page :cursor, size: 2, max_size: 5 }
    app = Castellan.app do
      pages title: "Journal"
      resource paged, at: "tags"
    end
    response = Rack::MockRequest.new(app).get("/tags", "HTTP_ACCEPT" => BROWSER)
    assert_equal [200, "text/html; charset=utf-8"], [response.status, response["content-type"]]
  end

  def test_the_start_page_links_the_collections
    assert_equal %w[/api/posts /api/writers /api/tags /api/comments], page("/", "SCRIPT_NAME" => "/api").css("main section a").map { |a|
      a["href"]
    }
    document = JSON.parse(get("/", "HTTP_ACCEPT" => "*/*").body)
    assert_equal "/posts", document["links"]["posts"]
  end

  def test_every_link_of_the_pages_leads_somewhere
    seen = {}
    waiting = ["/"]
    while (path = waiting.shift)
      next if seen.key?(path) || seen.size > 60

      response = get(path)
      seen[path] = response.status
      waiting.concat(Nokogiri::HTML5(response.body).css("a[href^='/']").map { |a| a["href"] })
    end
    assert_operator seen.size, :>, 15
    assert_equal [200], seen.values.uniq, seen.reject { |_, status| status == 200 }.to_s
  end

  def test_a_collection_has_a_table_and_a_form
    found = page("/posts?sort=-title&filter%5Btitle%5D=&page%5Bsize%5D=2")
    assert_equal %w[2 3], found.css("tbody th a").map(&:text)
    assert_equal "-title", found.at_css("option[selected]").text
    assert_equal ["filter[title]", "include", "page[size]"], found.css("form input").map { |input| input["name"] }
    assert_equal %w[First], page("/posts?filter%5Btitle%5D=First&sort=&include=").css("tbody td:nth-child(2)").map(&:text)
    assert_includes found.css("nav.pages a").map(&:text), "next"
  end

  def test_a_form_has_the_names_of_members_and_the_values_of_every_spelling
    dashed = Class.new(Journal.sequel(:sqlite).models::PostResource) do
      key_transform :dash
      filter :published_on
      sort :published_on
    end
    app = Castellan.app do
      pages
      resource dashed, at: "posts"
    end
    %w[published-on published_on].each do |name|
      html = Rack::MockRequest.new(app).get("/posts?filter[#{name}]=2026-01-31&sort=-#{name}", "HTTP_ACCEPT" => BROWSER).body
      found = Nokogiri::HTML5(html)
      assert_equal "2026-01-31", found.at_css("input[name='filter[published-on]']")["value"]
      assert_equal "-published-on", found.at_css("option[selected]").text
    end
  end

  def test_one_resource_shows_its_relationships_and_what_is_included
    found = page("/posts/1?include=writer")
    assert_includes found.css("dd a").map { |a| a["href"] }, "/writers/1"
    assert_includes found.css("dt a").map { |a| a["href"] }, "/posts/1/tags"
    assert_equal ["Included writers"], found.css("section[aria-label^=Included]").map { |section| section["aria-label"] }
  end

  def test_errors_are_shown_with_their_status
    response = get("/posts?sort=nope")
    assert_equal 400, response.status
    assert_includes Nokogiri::HTML5(response.body).at_css(".errors").text, "nope"
    assert_equal 404, get("/posts/99").status
    assert_equal [401, 'Bearer realm="api"'], get("/posts", "HTTP_AUTHORIZATION" => "none").then { |one|
      [one.status, one["www-authenticate"]]
    }
  end

  def test_values_names_and_paths_are_escaped
    Journal.sequel(:sqlite).run("UPDATE posts SET title = #{Journal.sequel(:sqlite).models::DB.literal(SCRIPT)}")
    ["/posts", "/posts/1", "/posts?sort=#{Rack::Utils.escape(SCRIPT)}", "/#{Rack::Utils.escape_path(SCRIPT)}",
     "/posts?include=#{SCRIPT.b}\xFF",
     "/posts?filter[title]=#{Rack::Utils.escape(SCRIPT)}"].each do |path|
      found = Nokogiri::HTML5(get(path, "SCRIPT_NAME" => "//evil\"<script>").body)
      assert_empty found.css("script, [onmouseover]"), path
      assert_empty(found.css("[href], [action]").map { |one| one["href"].to_s }.grep(%r{\A(?://|javascript:)}), path)
    end
    policy = get("/posts")["content-security-policy"]
    assert_match(/\Adefault-src 'none'; style-src 'sha256-[^']+';/, policy)
    assert_equal "nosniff", get("/posts")["x-content-type-options"]
  end

  def test_chromium_shows_pages_light_dark_and_on_a_phone
    needs :chromium
    Castellan::TestServers.puma(app) do |url|
      shown.each do |path, scheme, width|
        browse("#{url}#{path}", width: width, scheme: scheme) do |page|
          place = "#{path} #{scheme} #{width}"
          assert_empty page.evaluate("violations"), place
          assert_operator page.evaluate(WIDER), :<=, 0, place
          assert_empty page.evaluate(TOO_FAINT), place
          page.screenshot(path: "#{ENV.fetch("SHOTS")}/#{path.gsub(/\W/, "_")}-#{scheme}-#{width}.png", full: true) if ENV["SHOTS"]
        end
      end
    end
  end

  private

  # Every variant with bin/test --all.
  def shown
    return [["/posts", "light", 1200], ["/posts/1?include=tags,writer", "dark", 360]] unless Castellan::TestHelpers.all?

    ["/", "/posts", "/posts/1?include=tags,writer", "/posts/99"].product(%w[light dark], [1200, 360])
  end

  def app(pages: true)
    models = Journal.sequel(:sqlite).models
    posts = Class.new(models::PostResource) { filter :title }
    Rack::Lint.new(Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"] == "none" ? nil : 0 }
      pages(title: "Journal") if pages
      resource posts
      %w[Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
    end)
  end

  def env(path, **more)
    path, query = path.b.split("?", 2)
    Rack::MockRequest.env_for("/").merge("PATH_INFO" => path, "QUERY_STRING" => query.to_s, "HTTP_ACCEPT" => BROWSER)
                     .merge(more.transform_keys(&:to_s)).compact
  end

  def get(path, **more) = Rack::MockResponse[*(@app ||= app).call(env(path, **more))]

  def page(path, **more) = Nokogiri::HTML5(get(path, **more).body)
end
