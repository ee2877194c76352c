# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require "support/profiles"

# The page as people use it: in Chromium, in both themes, on a desk and on a phone, with the keyboard.
class ProfilePageBrowserTest < Minitest::Test
  include Castellan::Browsing

  Profiles = Castellan::Profiles
  PAGES = { list: "", request: "/requests/slow", deep: "/requests/deep", comparison: "/compare?a=slow&b=fast",
            nothing: "/requests/none" }.freeze
  # Figures that must not be looked for by scrolling.
  CUT_OFF = <<~JS
    [...document.querySelectorAll("table")].map((table) => table.parentElement)
      .filter((scroll) => scroll.scrollWidth > scroll.clientWidth).map((scroll) => scroll.ariaLabel)
  JS
  # Its library of protocol buffers looks for `require` with an eval, is refused, and goes on without.
  SPEEDSCOPE_TRIES = ["script-src eval"].freeze
  # The timers of two seconds that are set; and a page that is told whether it is hidden.
  COUNT_TIMERS = <<~JS
    window.timers = new Set();
    const [set, clear] = [setTimeout, clearTimeout];
    window.setTimeout = (work, ms, ...rest) => {
      const timer = set(() => { timers.delete(timer); work(...rest); }, ms);
      if (ms === 2000) timers.add(timer);
      return timer;
    };
    window.clearTimeout = (timer) => { timers.delete(timer); clear(timer); };
    window.hide = (hidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event("visibilitychange"));
      return timers.size;
    };
  JS
  WIDTHS = { desk: 1280, phone: 360 }.freeze

  VARIANTS = WIDTHS.to_a.product(%w[light dark])

  PAGES.each do |name, path|
    (Castellan::TestHelpers.all? ? VARIANTS : VARIANTS.values_at(0, 3)).each do |(device, width), scheme|
      define_method("test_the_#{name}_reads_well_on_a_#{device}_in_the_#{scheme}") do
        visit(path, width: width, scheme: scheme) do |page|
          assert_equal [], page.evaluate(TOO_FAINT)
          assert_equal [], page.evaluate(CUT_OFF)
          assert_equal 0, page.evaluate(WIDER), "nothing sticks out to the right"
          assert_equal [], page.evaluate("window.violations"), "the policy refuses nothing that the page needs"
          assert_empty violations(page) - SPEEDSCOPE_TRIES
          assert_equal [], page.evaluate("[...document.querySelectorAll('[style]')].map((element) => element.outerHTML)")
        end
      end
    end
  end

  def test_the_list_of_requests_is_completely_visible_at_every_width
    [320, 360, 600, 761, 800, 1020, 1021, 1100, 1600].each do |width|
      visit("", width: width) do |page|
        hidden = "(() => { const list = document.querySelector('#latest .scroll'); return list.scrollWidth - list.clientWidth; })()"
        assert_equal [0, 0], [page.evaluate(hidden), page.evaluate(WIDER)], width
      end
    end
  end

  def test_a_long_endpoint_takes_nothing_from_the_figures
    long = "GET api/v2/organisations/departments/employees_with_long_names#index_with_everything"
    [320, 800, 1280].each do |width|
      visit("", width: width, others: [Profiles.fast(id: "long", endpoint: long)]) do |page|
        assert_equal [[], 0], [page.evaluate(CUT_OFF), page.evaluate(WIDER)], width
        assert_equal [], page.evaluate(<<~JS), width
          [...document.querySelectorAll("tbody th")].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent.trim())
        JS
      end
    end
  end

  def test_controls_have_visible_edges
    %w[light dark].each do |scheme|
      visit("/requests/slow", scheme: scheme) do |page|
        assert_equal [], page.evaluate(FAINT_EDGES), scheme
      end
    end
  end

  def test_the_list_shows_slow_requests_immediately
    visit("") do |page|
      row = page.at_css("tr.slowest")
      assert_equal "slow", row.attribute("data-id"), "and not what memory_profiler made slow"
      assert_includes row.text, "213 ms"
      assert_includes row.text, "2 findings"
      press(page, "tr[data-id=slow] a")
      await(page, "document.querySelector('.headline')")
      assert_includes page.at_css(".headline").text, "324 of 325 queries repeat"
      assert_includes page.at_css(".next").text, "add .preload(:tokens)"
    end
  end

  def test_filtering_the_list_changes_the_url_and_stays_on_the_page
    visit("", others: [Profiles.fast(id: "lost", status: 404, endpoint: "GET /users/:id")]) do |page|
      page.evaluate("window.stayed = true")
      choose(page, "status", "4xx")
      await(page, "document.querySelectorAll('tr[data-id]').length === 1")
      assert_equal ["?status=4xx", true], page.evaluate("[location.search, window.stayed]")
      assert_equal "lost", page.at_css("tr[data-id]").attribute("data-id")
      choose(page, "status", "")
      choose(page, "endpoint", "GET users#index")
      await(page, "document.querySelectorAll('tr[data-id]').length === 3")
      page.refresh
      assert_equal "GET users#index", page.evaluate("document.querySelector('select[name=endpoint]').value")
    end
  end

  def test_the_list_is_filtered_without_javascript
    visit("?endpoint=GET+%2Fusers%2F%3Aid", others: [Profiles.fast(id: "lost", endpoint: "GET /users/:id")]) do |page|
      page.command("Emulation.setScriptExecutionDisabled", value: true)
      page.refresh
      assert_equal ["lost"], page.css("tr[data-id]").map { |row| row.attribute("data-id") }
      press(page, "form.filter button")
      assert_equal 1, page.css("tr[data-id]").size
    end
  end

  def test_a_request_that_comes_in_appears_and_nothing_else_changes
    visit("") do |page, results|
      page.evaluate("document.querySelector('tr[data-id=slow] input[name=a]').click()")
      page.evaluate("document.querySelector('tr[data-id=fast] a').focus()")
      results.add(Profiles.fast(id: "new"))
      await(page, "document.querySelector('tr[data-id=new]')")
      assert_equal %w[slow /castellan/requests/fast],
                   page.evaluate("[document.querySelector('input[name=a]:checked').value, document.activeElement.getAttribute('href')]")
      assert_includes page.network.traffic.filter_map { |exchange| exchange.response&.status }, 200
    end
  end

  def test_new_requests_can_be_chosen
    visit("") do |page, results|
      results.add(Profiles.fast(id: "new", endpoint: "GET <new>#index", status: 418))
      await(page, "document.querySelector('tr[data-id=new]')")
      choose(page, "endpoint", "GET <new>#index")
      choose(page, "status", "418")
      await(page, "document.querySelectorAll('tr[data-id]').length === 1")
      assert_equal "?endpoint=GET+%3Cnew%3E%23index&status=418", page.evaluate("location.search")
    end
  end

  def test_an_unchanged_list_costs_a_304
    visit("") do |page|
      await(page, "performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/latest')).length >= 2")
      asked = page.network.traffic.select { |exchange| exchange.url.end_with?("/latest") }
      assert_equal [200, 304], asked.filter_map { |exchange| exchange.response&.status }.first(2)
    end
  end

  # Chromium without a window never hides a tab, so the page is told that it is hidden.
  def test_a_list_in_a_hidden_tab_asks_nothing_and_at_once_when_it_is_seen_again
    visit("") do |page, results|
      page.command("Page.addScriptToEvaluateOnNewDocument", source: COUNT_TIMERS)
      page.refresh
      assert_equal 0, page.evaluate_async(<<~JS, 20), "nobody asks later"
        const look = () => (timers.size === 1 ? arguments[0](hide(true)) : setTimeout(look, 20));
        look();
      JS
      results.add(Profiles.fast(id: "new"))
      assert_equal 0, page.evaluate("hide(false)"), "it does not wait to ask"
      await(page, "document.querySelector('tr[data-id=new]')")
      await(page, "timers.size === 1")
    end
  end

  def test_a_paused_list_asks_nothing
    visit("") do |page, results|
      press(page, "[data-live-button]")
      results.add(Profiles.fast(id: "new"))
      assert_equal "paused", page.at_css("[data-live-text]").text
      press(page, "[data-live-button]")
      await(page, "document.querySelector('tr[data-id=new]')")
    end
  end

  def test_two_requests_are_chosen_in_the_list_and_compared
    visit("") do |page|
      press(page, "tr[data-id=slow] input[name=a]")
      press(page, "tr[data-id=fast] input[name=b]")
      press(page, ".compare-bar button")
      await(page, "document.querySelector('.sides')")
      assert_equal "17 × faster, 324 fewer queries, 2 findings solved.", page.at_css("h1").text.strip
      assert_equal %w[solved solved], page.css(".changes .verdict").map(&:text)
      assert_equal ["213 ms", "12.4 ms"], page.css(".side .big").map(&:text)
    end
  end

  def test_a_request_offers_to_be_compared_with_the_one_before_it
    visit("/requests/fast") do |page|
      press(page, ".compare-with button")
      await(page, "document.querySelector('.sides')")
      assert_equal "?b=fast&a=slow", page.evaluate("location.search")
    end
  end

  def test_the_timeline_has_a_mark_for_each_distinguishable_query
    visit("/requests/slow") do |page|
      counts = page.evaluate("[...document.querySelectorAll('.lanes [role=img]')].map((svg) => svg.querySelectorAll('rect').length)")
      assert_equal [162, 162, 1, 1, 1], counts
      assert page.evaluate(<<~JS)
        [...document.querySelectorAll(".lanes rect")].every((rect) => {
          const [mark, lane] = [rect, rect.ownerSVGElement].map((element) => element.getBoundingClientRect());
          return mark.left >= lane.left - 1 && mark.right <= lane.right + 1 && mark.width > 0.5;
        })
      JS
    end
  end

  def test_a_finding_links_to_its_queries_and_opens_them
    visit("/requests/slow") do |page|
      page.evaluate("document.querySelectorAll('details[open]').forEach((one) => { one.open = false })")
      press(page, "#finding-2 a.sql")
      await(page, "document.querySelector('#query-2 details').open")
      assert_includes page.at_css("#query-2 .lines").text, "app/serializers/user_index_serializer.rb:12"
    end
  end

  def test_memory_is_listed_by_file_line_gem_and_class
    visit("/requests/deep") do |page|
      headings = page.css("#memory ~ .tables h3").map(&:text)
      assert_equal ["By line", "By file", "By gem", "By class"], headings
      row = page.at_xpath("//table[.//th[text()='File']]/tbody/tr[1]").text
      assert_includes row, "app/serializers/user_index_serializer.rb"
      assert_includes row, "8.10 MB"
    end
  end

  def test_the_flame_graph_opens_and_reacts_to_a_click
    visit("/requests/deep") do |page|
      flame = "document.querySelector('iframe.flame').contentDocument"
      await(page, "#{flame}?.body?.innerText.includes('Left Heavy')")
      page.evaluate("[...#{flame}.querySelectorAll('div')].findLast((one) => one.textContent.endsWith('Sandwich')).click()")
      await(page, "#{flame}.body.innerText.includes('UserIndexSerializer#employee_id')")
      assert_includes asked(page).join("\n"), "/castellan/requests/deep.flame.json"
      assert_empty violations(page) - SPEEDSCOPE_TRIES
      assert_equal ["127.0.0.1"], asked(page).map { |url| URI(url).host }.uniq
    end
  end

  def test_todays_requests_have_a_time_and_others_a_date
    visit("", others: [Profiles.fast(id: "today", at: Time.now.to_f)]) do |page|
      shown, old = %w[today fast].map { |id| page.at_css("tr[data-id=#{id}] time").text }
      assert_match(/\A\d\d?:\d\d:\d\d/, shown)
      assert_match(/2023.*:\d\d/, old)
    end
  end

  def test_nothing_of_a_card_reaches_into_the_next
    [320, 360, 600, 900].each do |width|
      visit("", width: width) do |page|
        assert_equal [], page.evaluate(<<~JS), width
          [...document.querySelectorAll(".requests td:not(.draw)")].filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
            .map((cell) => cell.textContent.trim())
        JS
      end
    end
  end

  def test_every_time_is_that_of_the_readers_clock
    visit do |page|
      page.command("Emulation.setTimezoneOverride", timezoneId: "Asia/Tokyo")
      page.go_to("#{page.url}/requests/slow")
      shown = [page.at_css("time").text, page.at_css("option[value=deep]").text]
      assert_equal %w[7:13:20 7:14:10], shown.map { |text| text[/\d+:\d\d:\d\d/] }, "22:13:20 and 22:14:10 in UTC"
    end
  end

  def test_a_path_of_two_thousand_letters_leaves_room_for_the_rest
    visit("/requests/long", width: 360, others: [Profiles.slow(id: "long", path: "/#{"a" * 2_000}")]) do |page|
      assert_operator page.evaluate("document.querySelector('.hero .line').getBoundingClientRect().height"), :<, 90
      assert_includes page.at_css(".facts").text, "a" * 2_000
      assert_equal 0, page.evaluate(WIDER)
    end
  end

  def test_a_theme_is_chosen_and_kept
    visit("/requests/slow", scheme: "light") do |page|
      assert_equal [true, "rgb(245, 246, 244)"], ground(page)
      press(page, "input[name=theme][value=dark] + span")
      assert_equal [true, "rgb(20, 23, 26)"], ground(page)
      page.go_to(page.url.sub(%r{/requests.*}, ""))
      assert_equal [true, "rgb(20, 23, 26)"], ground(page)
      assert_equal "DARK", page.evaluate("localStorage.getItem('speedscope-color-scheme')")
      press(page, "input[name=theme][value=auto] + span")
      assert_equal [true, "rgb(245, 246, 244)"], ground(page)
    end
  end

  def test_the_flame_graph_follows_the_theme
    visit("/requests/deep", scheme: "light") do |page|
      ink = "(() => { const graph = document.querySelector('iframe.flame').contentDocument?.querySelector('body > div'); " \
            "return graph?.innerText.includes('Sandwich') ? Number(getComputedStyle(graph).color.match(/\\d+/)[0]) : null; })()"
      await(page, "#{ink} !== null")
      assert_operator page.evaluate(ink), :<, 100, "dark letters on a light ground"
      press(page, "input[name=theme][value=dark] + span")
      await(page, "#{ink} > 150")
      assert_equal "DARK", page.evaluate("localStorage.getItem('speedscope-color-scheme')")
    end
  end

  def test_the_keyboard_reaches_every_control_with_a_visible_focus
    visit("") do |page|
      reached = Array.new(11) do
        page.keyboard.type(:tab)
        page.evaluate("[document.activeElement.className || document.activeElement.name || document.activeElement.textContent.trim(), " \
                      "getComputedStyle(document.activeElement).outlineStyle]")
      end
      assert_equal ["skip", "brand", "theme", "1 finding over many requests", 'Pause', 'endpoint', 'status', 'Filter', 'scroll'],
                   reached.first(9).map(&:first)
      assert_equal "GET users#index", reached[9].first
      seen = reached.map { |name, outline| name == "theme" ? "on its label" : outline }
      refute_includes seen, "none"
    end
  end

  def test_the_keyboard_opens_a_request_and_its_queries
    visit("") do |page|
      page.evaluate("document.querySelector('tr[data-id=slow] a').focus()")
      page.keyboard.type(:enter)
      await(page, "document.querySelector('#queries')")
      page.evaluate("document.querySelector('#query-3 summary').focus()")
      page.keyboard.type(:space)
      assert page.evaluate("document.querySelector('#query-3 details').open")
    end
  end

  def test_the_command_for_curl_is_copied
    visit("/requests/slow") do |page|
      page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
      press(page, ".curl button")
      await(page, "document.querySelector('[data-toast]').textContent === 'Copied'")
      assert_match(%r{\Acurl 'http:.*--globoff.*-H 'accept: application/json'\z}m, page.evaluate("window.copied"))
    end
  end

  def test_headings_are_in_order_and_every_control_has_a_name
    PAGES.each_value do |path|
      visit(path) do |page|
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.tagName[1]))")
        assert_equal 1, levels.first
        assert(levels.each_cons(2).all? { |one, following| following <= one + 1 }, levels.inspect)
        assert_equal [], page.evaluate(<<~JS)
          [...document.querySelectorAll("select, input:not([type=hidden]), button, iframe, a, summary")]
            .filter((one) => !(one.textContent.trim() || one.title || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)
        JS
      end
    end
  end

  private

  def visit(path = "", others: [], **options, &block)
    results = Profiles.kept(Profiles.slow, Profiles.deep(at: 1_700_000_050.0, duration_ns: 5_000_000_000), Profiles.fast, *others)
    application = Castellan::Profile::Page.new(store: results, evidence: -> { [Profiles::VAIN] })
    Castellan::TestServers.puma(->(env) { application.call(env) }) do |base|
      browse("#{base}/castellan#{path}", **options) { |page| block.call(page, results) }
    end
  end

  def choose(page, name, value)
    page.evaluate("(() => { const select = document.querySelector('select[name=#{name}]'); select.value = #{value.to_json}; " \
                  "select.dispatchEvent(new Event('change', { bubbles: true })); })()")
  end

  def ground(page) = page.evaluate("[!document.querySelector('[data-themes]').hidden, getComputedStyle(document.body).backgroundColor]")
end
