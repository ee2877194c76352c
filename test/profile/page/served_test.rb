# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require "castellan/profile"
require "sequel"
require "rack"

# The middleware, the page and the badge together: a Rack application with a database, behind Puma, in Chromium.
class ProfilePageServedTest < Minitest::Test
  include Castellan::Browsing

  HTML = <<~HTML
    <!DOCTYPE html><html><head><title>Front</title><link rel="icon" href="data:,">
    <script src="/castellan/badge.js" defer></script></head><body><h1>Front</h1></body></html>
  HTML

  def setup
    @database = Sequel.sqlite
    @database.create_table(:users) { primary_key :id }
    5.times { @database[:users].insert }
    @allowed = true
  end

  def teardown
    forget(@database)
  end

  def test_chromium_reads_the_server_timing
    serve do |base|
      browse("#{base}/users") do |page|
        timing = page.evaluate(<<~JS)
          performance.getEntriesByType("navigation")[0].serverTiming.map((one) => [one.name, one.duration, one.description])
        JS
        names = timing.map(&:first)
        assert_empty %w[db app total] - names
        assert_match(/\A6 queries/, timing.assoc("db").last)
        assert_operator timing.assoc("total")[1], :>, 0
      end
    end
  end

  def test_chromium_sees_no_trace_without_authorization
    @allowed = false
    serve do |base|
      browse("#{base}/users") do |page|
        assert_equal [], page.evaluate("performance.getEntriesByType('navigation')[0].serverTiming")
        page.go_to("#{base}/castellan")
        assert_equal 204, page.network.status, "the application's own answer"
      end
    end
  end

  def test_a_request_is_on_the_page_with_its_queries_and_lines
    serve do |base|
      browse("#{base}/users") do |page|
        open_newest(page, "#{base}/castellan?status=200") # Chromium asks for an icon too
        await(page, "document.querySelector('#queries')")
        assert_includes page.at_css("#queries").text, "6 queries"
        assert_includes page.at_css(".groups").text, "test/profile/page/served_test.rb"
        assert_equal [], violations(page)
      end
    end
  end

  def test_the_page_shows_an_error_for_an_unknown_depth
    serve do |base|
      browse("#{base}/users?profile=everything") do |page|
        open_newest(page, "#{base}/castellan?status=200")
        await(page, "document.querySelector('.notes')")
        assert_includes page.at_css(".notes").text, "everything"
      end
    end
  end

  def test_an_exception_is_on_the_page_and_was_not_swallowed
    serve do |base|
      browse do |page|
        page.go_to("#{base}/broken")
        page.go_to("#{base}/castellan")
        await(page, "document.querySelector('.requests')")
        assert_includes page.at_css(".requests").text, "exception"
        page.at_xpath("//tr[.//code[contains(., '/broken')]]//a").click
        await(page, "document.querySelector('.headline')")
        assert_match(/KeyError at \S+served_test\.rb:\d+/, page.at_css(".headline").text)
      end
    end
  end

  def test_the_flame_graph_of_a_real_profile_opens
    serve do |base|
      browse("#{base}/users?profile=wall") do |page|
        open_newest(page, "#{base}/castellan?status=200")
        await(page, "document.querySelector('iframe.flame')?.contentDocument?.body?.innerText.includes('Left Heavy')")
        assert_includes page.at_css(".badge.depth").text, "wall"
      end
    end
  end

  def test_the_badge_shows_and_links_the_times_of_the_page_and_its_requests
    serve do |base|
      browse("#{base}/front") do |page|
        await(page, "document.querySelector('castellan-badge')")
        page.evaluate("fetch('/users').then((response) => response.text())")
        await(page, "document.querySelector('castellan-badge').shadowRoot.querySelector('summary').textContent.includes('2 requests')")
        page.evaluate("document.querySelector('castellan-badge').shadowRoot.querySelector('summary').click()")
        links = "[...document.querySelector('castellan-badge').shadowRoot.querySelectorAll('a')]"
        await(page, "#{links}.length === 2 && #{links}.every((link) => /requests\\/[\\w-]+$/.test(link.href))")
        assert_equal %w[/users /front], page.evaluate("#{links}.map((link) => link.textContent)")
        assert_equal [], violations(page)
      end
    end
  end

  def test_the_badge_leads_each_request_to_its_own_profile
    serve do |base|
      browse("#{base}/front") do |page|
        await(page, "document.querySelector('castellan-badge')")
        page.evaluate_async(<<~JS, 20)
          (async () => { for (const page of [1, 2, 2]) await (await fetch(`/users?page=${page}`)).text(); arguments[0](); })()
        JS
        await(page, "document.querySelector('castellan-badge').shadowRoot.querySelector('summary').textContent.includes('4 requests')")
        page.evaluate("document.querySelector('castellan-badge').shadowRoot.querySelector('summary').click()")
        links = "[...document.querySelector('castellan-badge').shadowRoot.querySelectorAll('a')]"
        await(page, "#{links}.length === 4 && #{links}.every((link) => /requests\\/[\\w-]+$/.test(link.href))")
        found = page.evaluate("#{links}.map((link) => [link.textContent, link.href])")
        assert_equal %w[/users?page=2 /users?page=2 /users?page=1 /front], found.map(&:first)
        assert_equal 4, found.map(&:last).uniq.size
        page.go_to(found[2].last)
        assert_includes page.at_css(".line").text, "/users?page=1"
      end
    end
  end

  def test_a_signed_link_grants_access_and_removes_the_token_from_the_url
    serve(secret: "a secret of thirty-two bytes or more") do |base|
      link = shared_link(base)
      @allowed = false
      browse(link) do |page|
        assert_equal [200, URI(link).path, nil], [page.network.status, URI(page.url).path, URI(page.url).query]
        assert_includes page.at_css("h1").text, "/none"
        page.go_to("#{page.url}.link")
        assert_includes page.body, URI(link).request_uri, "who was let in by a token passes on the same one, and makes no new one"
      end
      browse(link.sub(/\w{4}\z/, "0000")) { |page| assert_equal 204, page.network.status }
    end
  end

  def test_there_is_no_signed_link_without_a_secret
    serve do |base|
      browse("#{base}/users") do |page|
        open_newest(page, "#{base}/castellan?status=200")
        await(page, "document.querySelector('[data-copy-link]')")
        assert_nil page.at_css("[data-share]")
        page.go_to("#{page.url}.link")
        assert_equal 404, page.network.status
      end
    end
  end

  def test_unauthorised_clients_get_no_badge
    @allowed = false
    serve do |base|
      browse do |page|
        page.go_to("#{base}/front")
        assert_equal [204, nil], [status_of(page, "badge.js"), page.at_css("castellan-badge")]
      end
    end
  end

  private

  # A result is stored when the server has closed the response, which can be after the browser has read it.
  def open_newest(page, list)
    100.times do
      page.go_to(list)
      break if page.at_css("tr[data-id] a")
    end
    press(page, "tr[data-id] a")
  end

  def shared_link(base)
    browse("#{base}/none") do |page|
      open_newest(page, "#{base}/castellan?status=204")
      await(page, "document.querySelector('[data-share]')")
      page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
      press(page, "[data-share]")
      await(page, "window.copied")
      page.evaluate("window.copied")
    end
  end

  def serve(**options, &block)
    options = { authorize: ->(_env) { @allowed }, environment: "production", **options }
    profiled = Castellan::Profile::Middleware.new(method(:application), **options)
    Castellan::TestServers.puma(->(env) { profiled.call(env) }, &block)
  end

  def application(env)
    return html if env["PATH_INFO"] == "/front"
    return {}.fetch(:nothing) if env["PATH_INFO"] == "/broken"
    return [204, {}, []] unless env["PATH_INFO"] == "/users"

    ids = @database[:users].select_map(:id)
    ids *= 100 if env["QUERY_STRING"].include?("wall") # long enough for a few samples
    names = ids.map { |id| @database[:users].first(id: id) }
    [200, { "content-type" => "application/json" }, [JSON.generate(names)]]
  end

  # As strict as a page may be that has the badge.
  def html
    policy = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:"
    [200, { "content-type" => "text/html", "content-security-policy" => policy }, [HTML]]
  end

  def status_of(page, name)
    page.network.traffic.find { |exchange| exchange.url.end_with?(name) }.response.status
  end
end
