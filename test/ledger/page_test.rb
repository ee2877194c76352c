# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require_relative "../../examples/support/demo/ledger"
require "tmpdir"

# The report in a browser draws charts, requests nothing, fits a phone, and is readable.
class LedgerPageTest < Minitest::Test
  include Castellan::Browsing

  WIDTHS = { desktop: 1280, phone: 390 }.freeze
  HOSTILE = %q(</script><img src=x onerror="document.title='owned'"><b>)
  DRAWN = <<~JS
    [...document.querySelectorAll("canvas")].map((canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const colors = new Set();
      for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) colors.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
      return [canvas.clientWidth > 250, colors.size > 3];
    })
  JS

  WIDTHS.each do |name, width|
    %w[light dark].each do |scheme|
      define_method("test_reads_well_on_a_#{name}_in_the_#{scheme}") do
        show(report, width: width, scheme: scheme) do |page|
          assert_equal [[true, true], [true, true]], page.evaluate(DRAWN), "the charts are drawn"
          assert_equal [], page.evaluate(TOO_FAINT)
          assert_operator page.evaluate("document.documentElement.scrollWidth"), :<=, width
          assert_equal scheme == "dark", page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        end
      end
    end
  end

  def test_the_page_sends_no_request_and_violates_no_policy
    show(report) do |page|
      assert_equal ["file"], page.network.traffic.map { |exchange| URI(exchange.url).scheme }.uniq
      assert_equal 1, page.network.traffic.size
      assert_empty violations(page)
    end
  end

  def test_the_charts_follow_the_color_scheme
    show(report) do |page|
      light = page.evaluate("document.querySelector('canvas').toDataURL()")
      page.execute("window.changed = new Promise((told) => matchMedia('(prefers-color-scheme: dark)').addEventListener('change', told))")
      emulate(page, "dark")
      page.evaluate_async("changed.then(() => arguments[0]())", 10)
      refute_equal light, page.evaluate("document.querySelector('canvas').toDataURL()")
    end
  end

  def test_the_keyboard_reaches_links_and_tables
    show(report) do |page|
      reached = Array.new(12) do
        page.keyboard.type(:tab)
        page.evaluate("document.activeElement.className || document.activeElement.textContent")
      end
      assert_equal "skip", reached.first
      assert_includes reached, "scroll"
      assert_includes reached, "code"
    end
  end

  def test_every_figure_of_a_chart_is_in_a_table_with_headings
    show(report) do |page|
      assert_equal "812", page.at_css("tbody tr td.lead").text
      assert_equal [true], page.evaluate("[...new Set([...document.querySelectorAll('th')].map((th) => th.hasAttribute('scope')))]")
      assert_equal [true], page.evaluate("[...new Set([...document.querySelectorAll('canvas')].map((c) => c.ariaLabel.length > 20))]")
    end
  end

  def test_hostile_texts_are_escaped
    ledger = Castellan::Demo::Ledger.new
    ledger.add(story: HOSTILE, step: HOSTILE, duration_ms: 5.0, finding: HOSTILE, code: HOSTILE, wrong: HOSTILE)
    ledger.add(story: HOSTILE, step: "other", duration_ms: 4.0)
    show(Castellan::Demo::Ledger::ReportFiles.new(ledger, title: HOSTILE, environment: { HOSTILE => HOSTILE })) do |page|
      assert_equal HOSTILE, page.title
      assert_equal [0, 0], page.evaluate("[document.images.length, document.querySelectorAll('b').length]")
      assert_equal [[true, true]], page.evaluate(DRAWN)
    end
  end

  private

  def show(report, **view, &block)
    Dir.mktmpdir { |dir| browse("file://#{report.write(dir, root: dir)}", **view, &block) }
  end

  def report
    ledger = Castellan::Demo::Ledger.new
    add(ledger, "users", :duration_ms, { "baseline" => 812.0, "includes of two, as told" => 640.0,
                                         "every association the finding named" => 121.7,
                                         "a record cache that is slower" => 160.0, "Castellan resource" => 3.9 })
    add(ledger, "posts", :requests_per_s, { "naive" => 9.18, "304" => 231.0, "perforated" => 33.0, "Castellan" => 1_410.0 })
    Castellan::Demo::Ledger::ReportFiles.new(ledger, commands: ["bin/demo"], environment: { "ruby" => "3.1.2" },
                                                     targets: [{ title: "rate", goal: "60 %", measured: "52 %", reached: false },
                                                               { title: "time", goal: "30 ×", measured: "41 ×", reached: true },
                                                               { title: "PostgreSQL", goal: "30 ×", measured: nil, reached: nil }])
  end

  def add(ledger, story, figure, steps)
    steps.each do |step, value|
      ledger.add(story: story, step: step, figure => value, story_value: 100.0, finding: "n_plus_one at a_long_path/of_a_serializer.rb:14",
                 code: "examples/users/app/controllers/users_controller.rb:12", allocated_bytes: 59_600_000, queries: 1_139,
                 retained_objects: 8_277, retained_bytes: 248_000, response_bytes: 209_000, sql_ms: 42.1, allocated_objects: 744_989,
                 wrong: ("users/3: roles" if step.include?("as told")))
    end
  end
end
