# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require "support/profiles"

# Texts of strangers in every place of a profile that has one, in Chromium: with the policy, and with the policy switched
# off, so that escaping has to hold alone.
class ProfilePageHostileTextsTest < Minitest::Test
  include Castellan::Browsing

  Profiles = Castellan::Profiles
  OWN = "window.owned = (window.owned || 0) + 1; alert(1)"
  PAYLOADS = [
    %(<script>#{OWN}</script>), %(</script><img src=x onerror="#{OWN}">), %("><svg onload="#{OWN}">), %(' onmouseover='#{OWN}' x='),
    %(</code></pre><iframe srcdoc="<script>parent.owned = 1</script>"></iframe>), %(javascript:#{OWN}), %(--><!--<script>#{OWN}</script>),
    %(</title><script>#{OWN}</script>), %(<%= raise %>\#{raise} ${#{OWN}} {{constructor}}), "\u2028\u0000\xFF<script>#{OWN}</script>"
  ].freeze
  FIGURES = { at: 1_700_000_000.0, status: 200, duration_ns: 9_000_000, totals: { queries: 10, cached_queries: 0, rows: 0 },
              parts: { sql_ns: 5_000_000, render_ns: 1, cache_ns: 1, gc_ns: 0, outside_ns: 3_999_998 } }.freeze
  PAGES = ["", "?endpoint=%3Cscript%3Ealert(1)%3C/script%3E&status=%22%3E%3Cscript%3E", "/requests/hostile", "/requests/hostile.html",
           "/compare?a=hostile&b=other", "/compare?a=%3Cscript%3E&b=%22", "/requests/%3Cscript%3Ealert(1)"].freeze

  [false, true].each do |bypass|
    define_method("test_hostile_texts_stay_texts#{'_where_the_policy_is_switched_off' if bypass}") do
      visit(bypass: bypass) do |page, base|
        PAGES.each do |path|
          open_page(page, base, path)
          assert_equal [], intruders(page), path
          assert_nil page.evaluate("window.owned"), path
        end
        assert_equal [], @dialogs
      end
    end
  end

  def test_hostile_texts_are_shown_as_they_are
    visit do |page, base|
      page.go_to("#{base}/castellan/requests/hostile")
      shown = page.evaluate("document.body.textContent")
      PAYLOADS.first(8).each { |payload| assert_includes shown, payload }
    end
  end

  def test_a_hostile_name_in_a_flame_graph_stays_a_text
    visit(bypass: true) do |page, base|
      page.go_to("#{base}/castellan/requests/hostile")
      flame = "document.querySelector('iframe.flame').contentDocument"
      await(page, "#{flame}?.body?.innerText.includes('Left Heavy')")
      page.evaluate("[...#{flame}.querySelectorAll('div')].findLast((one) => one.textContent.endsWith('Sandwich')).click()")
      await(page, "#{flame}.body.innerText.includes('onerror')")
      assert_equal 0, page.evaluate("#{flame}.querySelectorAll('img, iframe, svg[onload]').length")
      assert_nil page.evaluate("window.owned")
    end
  end

  def test_the_refreshed_list_is_escaped
    visit(bypass: true) do |page, base, results|
      page.go_to("#{base}/castellan")
      results.add(hostile("newcomer"))
      await(page, "document.querySelector('tr[data-id=newcomer]')")
      assert_equal [], intruders(page)
      assert_nil page.evaluate("window.owned")
    end
  end

  # A browser shows a file as what it is said to be.
  def test_data_is_never_taken_for_html
    visit(bypass: true) do |page, base|
      %w[/requests.json /requests/hostile.json /requests/hostile.flame.json].each do |path|
        page.go_to("#{base}/castellan#{path}")
        assert_includes %w[application/json text/plain], page.evaluate("document.contentType")
        assert_nil page.evaluate("window.owned")
      end
    end
  end

  private

  def visit(**options)
    results = Profiles.kept(hostile("hostile"), hostile("other"))
    application = Castellan::Profile::Page.new(store: results, evidence: method(:evidence))
    Castellan::TestServers.puma(->(env) { shown(application.call(env)) }) do |base|
      browse(**options) do |page|
        watch_dialogs(page)
        yield page, base, results
      end
    end
  end

  # So that an export is opened and not downloaded.
  def shown(response) = response.tap { response[1].delete("content-disposition") }

  def watch_dialogs(page)
    @dialogs = []
    page.on(:dialog) do |dialog|
      @dialogs << dialog.message
      dialog.accept
    end
  end

  def open_page(page, base, path)
    page.go_to("#{base}/castellan#{path}")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.evaluate("document.querySelectorAll('*').forEach((one) => one.dispatchEvent(new MouseEvent('mouseover', { bubbles: true })))")
  end

  # Elements and attributes that no template of ours has.
  def intruders(page)
    page.evaluate(<<~JS)
      (() => {
      const followed = ["href", "src", "action", "formaction", "xlink:href"];
      const acts = ({ name, value }) => name.startsWith("on") || followed.includes(name) && /^\\s*javascript:/i.test(value);
      return [...document.querySelectorAll("img, object, embed, base, iframe:not(.flame)"),
       ...[...document.querySelectorAll("*")].filter((one) => [...one.attributes].some(acts))].map((one) => one.outerHTML.slice(0, 200));
      })()
    JS
  end

  def evidence
    texts = PAYLOADS.cycle
    findings(-> { texts.next.dup.force_encoding("UTF-8").scrub }).map { |finding| Castellan::Finding.new(**finding) }
  end

  # Every text of a profile is a hostile one.
  def hostile(id)
    texts = PAYLOADS.cycle
    text = -> { texts.next.dup.force_encoding("UTF-8").scrub }
    Castellan::Profile::Result.new(**FIGURES, **requested(text), **recorded(text), id: id)
  end

  def recorded(text)
    { queries: queries(text), findings: findings(text), memory: memory(text), flame: flame(text), notes: PAYLOADS.map { text.call } }
  end

  def requested(text)
    { method: text.call, path: "/#{text.call}", query: text.call, endpoint: text.call, depth: text.call, exception: text.call,
      headers: PAYLOADS.to_h { [text.call, text.call] }, cache: [{ layer: text.call, outcome: text.call, at_ns: 1, duration_ns: 1 }],
      spans: [{ kind: text.call, name: text.call, at_ns: 1, duration_ns: 1 }] }
  end

  def queries(text)
    PAYLOADS.map do |payload|
      Profiles.query("select '#{payload.scrub}'", 1, 1, text.call, finding: 0).merge(frames: [text.call, text.call])
    end
  end

  def findings(text)
    PAYLOADS.map do
      texts = %i[kind fingerprint location parent_location association fix fix_refused source].to_h { |name| [name, text.call] }
      Castellan::Finding.new(**texts, count: 2, parent_count: 1, total_ns: 1).to_h
    end
  end

  def memory(text)
    rows = -> { PAYLOADS.map { { name: text.call, allocated: 1, retained: 1, allocated_bytes: 1, retained_bytes: 1 } } }
    { total_allocated: 1, total_retained: 1, total_allocated_bytes: 1, total_retained_bytes: 1,
      by_gem: rows.call, by_file: rows.call, by_line: rows.call, by_class: rows.call }
  end

  def flame(text)
    frames = [{ "name" => PAYLOADS[1] }, { "name" => PAYLOADS[2], "file" => text.call }]
    Profiles.flame.merge("name" => text.call, "shared" => { "frames" => frames })
  end
end
