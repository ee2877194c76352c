# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo/ledger"
require "json"
require "tmpdir"

class LedgerReportTest < Minitest::Test
  HOSTILE = %q(</script><img src=x onerror="document.title='owned'">'&"\\u2028)

  def test_writes_three_files
    Dir.mktmpdir do |dir|
      path = Castellan::Demo::Ledger::ReportFiles.new(ledger).write(File.join(dir, "new", "report"), root: dir)
      assert_equal %w[index.html ledger.json ledger.md], Dir.children(File.dirname(path)).sort
      assert_equal 3, JSON.parse(File.read(File.join(File.dirname(path), "ledger.json"))).size
      assert_includes File.read(path), 'href="../../app/users_controller.rb"'
    end
  end

  def test_targets_are_marked_as_reached_or_missed
    report = Castellan::Demo::Ledger::ReportFiles.new(ledger, targets: [{ title: "rate", goal: "60 %", measured: "52 %", reached: false },
                                                                        { title: "time", goal: "30 ×", measured: "41 ×", reached: true },
                                                                        { title: "on PostgreSQL", goal: "30 ×", measured: nil,
                                                                          reached: nil }])
    ["- not reached: rate; goal 60 %, measured 52 %", "- reached: time", "- not measured: on PostgreSQL; goal 30 ×, measured nothing"]
      .each { |line| assert_includes report.to_markdown, line }
    assert_match(%r{not reached</span>\s+<span class="what">rate</span>}, report.to_html)
  end

  def test_ratio_lines_are_sentences_computed_from_the_rows
    one = { story: "users", step: "resource", against: "baseline" }
    report = Castellan::Demo::Ledger::ReportFiles.new(ledger, ratios: [one, { **one, against: "nobody" }])
    assert_equal ["users: “resource” is 50 × as fast as “baseline”"], report.ratio_lines
  end

  def test_each_figure_has_a_sentence
    rows = Castellan::Demo::Ledger.new
    rows.add(story: "posts", step: "limit", requests_per_s: 3_420.0, allocated_objects: 10, response_bytes: 100)
    rows.add(story: "posts", step: "Rails", requests_per_s: 172.0, allocated_objects: 1_370, response_bytes: 50)
    ratios = [["Rails", "limit", nil], ["limit", "Rails", :allocated_objects], ["Rails", "limit", :response_bytes]]
             .map { |step, against, on| { story: "posts", step: step, against: against, on: on } }
    assert_equal ["posts: “Rails” has 0.05 × the rate of “limit”", "posts: “limit” makes 137 × fewer objects than “Rails”",
                  "posts: “Rails” is 2.0 × as good, by response_bytes, as “limit”"],
                 Castellan::Demo::Ledger::ReportFiles.new(rows, ratios: ratios).ratio_lines
  end

  def test_code_in_a_step_is_shown_as_code
    rows = Castellan::Demo::Ledger.new
    rows.add(story: "users", step: "`includes(<:roles>)` of two", duration_ms: 2.0)
    assert_includes Castellan::Demo::Ledger::ReportFiles.new(rows).to_html,
                    '<span class="step"><code>includes(&lt;:roles&gt;)</code> of two</span>'
  end

  def test_the_headline_is_the_best_step_unless_another_is_named
    assert_match(%r{<p class="factor">50 ×</p>}, Castellan::Demo::Ledger::ReportFiles.new(ledger).to_html)
    longer = ledger.tap { |rows| rows.add(story: "users", step: "document cache", duration_ms: 1.0) }
    named = Castellan::Demo::Ledger::ReportFiles.new(longer, stories: { "users" => { headline: "resource" } })
    assert_match(%r{<p class="factor">50 ×</p>}, named.to_html)
    assert_match(%r{<p class="factor">200 ×</p>}, Castellan::Demo::Ledger::ReportFiles.new(longer).to_html)
  end

  def test_the_page_loads_nothing_and_allows_only_its_own_scripts
    html = Castellan::Demo::Ledger::ReportFiles.new(ledger).to_html
    policy = html[/Content-Security-Policy" content="([^"]+)"/, 1].gsub("&#39;", "'")
    assert_equal "default-src 'none'; script-src # #; style-src #; base-uri 'none'; form-action 'none'", policy.gsub(/'sha256-\S+'/, "#")
    refute_match(/<(?:link|img|iframe)|<script[^>]+src=|sourceMappingURL/, html)
    refute_match(/ style="| on[a-z]+="/, html.sub(%r{<script>.*</script>}m, ""))
  end

  def test_all_input_is_escaped
    report = hostile_report
    html = report.to_html
    refute_includes html, "<img"
    assert_equal 3, html.scan("</script>").size
    refute_includes report.to_markdown, "<img"
  end

  def test_a_code_path_cannot_become_an_external_link
    ledger = Castellan::Demo::Ledger.new
    ["javascript:alert(1)", "//example.com/x.rb:1", "https://example.com"].each_with_index do |code, index|
      ledger.add(story: "a", step: "step #{index}", duration_ms: 1.0, code: code)
    end
    links = Castellan::Demo::Ledger::ReportFiles.new(ledger).to_html.scan(/class="code" href="([^"]+)"/).flatten
    assert_equal ["../javascript%3Aalert%281%29", "../example.com/x.rb", "../https%3A/example.com"], links
  end

  def test_an_empty_ledger_is_a_valid_page
    assert_includes Castellan::Demo::Ledger::ReportFiles.new(Castellan::Demo::Ledger.new).to_html, "<h1>Castellan ledger</h1>"
  end

  private

  def ledger
    Castellan::Demo::Ledger.new.tap do |ledger|
      ledger.add(story: "users", step: "baseline", duration_ms: 200.0, code: "app/users_controller.rb:12", finding: "n_plus_one")
      ledger.add(story: "users", step: "as told", duration_ms: 90.0, wrong: "users/3: roles")
      ledger.add(story: "users", step: "resource", duration_ms: 4.0)
    end
  end

  def hostile_report
    ledger = Castellan::Demo::Ledger.new
    2.times do |index|
      ledger.add(story: HOSTILE, step: "#{HOSTILE}#{index}", duration_ms: 1.0, finding: HOSTILE, code: HOSTILE, command: HOSTILE,
                 environment: { HOSTILE => HOSTILE }, wrong: (HOSTILE if index == 1))
    end
    Castellan::Demo::Ledger::ReportFiles.new(ledger, title: HOSTILE, commands: [HOSTILE], environment: { HOSTILE => HOSTILE, b: HOSTILE },
                                                     stories: { HOSTILE => { title: HOSTILE, about: HOSTILE, command: HOSTILE } },
                                                     targets: [{ title: HOSTILE, goal: HOSTILE, measured: HOSTILE, reached: true }],
                                                     ratios: [{ story: HOSTILE, step: "#{HOSTILE}0", against: "#{HOSTILE}1" }])
  end
end
