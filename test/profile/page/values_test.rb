# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/profiles"

# Values that the page computes before it draws: figures, groups, places on the timeline, differences, the command for curl.
class ProfilePageValuesTest < Minitest::Test
  Profiles = Castellan::Profiles
  Page = Castellan::Profile::Page

  def test_queries_are_grouped_and_know_their_lines
    group = Page::QueryGroup.all(Profiles.slow.queries).first
    assert_equal [162, 162, 12_312_000, 76_000, 1], [group.count, group.rows, group.total_ns, group.longest_ns, group.finding]
    assert_equal ["app/serializers/user_index_serializer.rb:16:in `last_login_at'", 162], group.lines.first.first(2)
    assert_equal "SELECT authentication_tokens", group.label
  end

  def test_an_unknown_number_of_rows_is_not_zero
    untold, none = [nil, 0].map do |rows|
      Profiles.fast(queries: [Profiles.query("select 1", 0, 1_000, nil, rows: rows)], totals: { queries: 1, cached_queries: 0, rows: 0 })
    end
    assert_equal [nil, 0, 162], [untold, none, Profiles.fast].map(&:rows)
    rows = Page::Comparison.new(Profiles.fast, untold).figures.find { |figure| figure.name == "Rows" }
    assert_equal [162, nil, nil], [rows.before, rows.after, rows.verdict]
  end

  def test_a_statement_is_labelled_by_what_it_does_and_to_which_table
    statements = ['INSERT INTO "users" (a) VALUES (?)', "UPDATE `posts` SET a = ?", "delete from public.tags", "BEGIN", ""]
    assert_equal ["INSERT users", "UPDATE posts", "DELETE public.tags", "BEGIN", ""],
                 statements.map { |sql| Page::QueryGroup.new([{ fingerprint: sql }]).label }
  end

  def test_the_timeline_joins_indistinguishable_queries_and_loses_none
    queries = Array.new(10_000) { |n| Profiles.query("select 1", n * 20_000, 10_000, nil) }
    lane = Page::Timeline.new(Profiles.slow(queries: queries, spans: [], cache: [])).lanes.first
    assert_operator lane.marks.size, :<, 1_000
    assert_equal [10_000, 100_000_000], [lane.marks.sum(&:count), lane.marks.sum(&:duration_ns)]
    assert(lane.marks.all? { |mark| mark.x >= 0 && mark.x + mark.width <= 1_001.5 })
  end

  def test_the_timeline_has_a_lane_for_the_statements_that_have_none_of_their_own
    queries = Array.new(30) { |n| Profiles.query("select #{n} from t", n * 1_000_000, 1_000 * (n + 1), nil) }
    lanes = Page::Timeline.new(Profiles.slow(queries: queries, spans: [], cache: [])).lanes
    assert_equal [13, "18 other statements"], [lanes.size, lanes.last.label]
    assert_equal 30, lanes.sum(&:count)
  end

  def test_the_headline_names_the_most_important_finding
    assert_equal "324 of 325 queries repeat: 16.3 ms in the database, of 213 ms in all.", headline(Profiles.slow).text
    assert_match(/\Aadd \.preload\(:tokens\)/, headline(Profiles.slow).next_step)
    assert_equal "94 % of the time is application code.", headline(Profiles.fast).text
    assert_match(/depth cpu/, headline(Profiles.fast).next_step)
    assert_equal "Nothing stands out, and it is fast.", headline(Profiles.fast(duration_ns: 900_000)).text
    assert_includes headline(Profiles.slow(exception: "KeyError: a")).text, "KeyError: a"
    assert_nil headline(Profiles.fast(exception: "KeyError: a")).next_step
    assert_nil headline(Profiles.fast(duration_ns: 900_000)).next_step
  end

  def test_findings_with_one_fix_name_all_associations_that_it_loads
    findings = %w[User#employee User#roles User#roles Role#group].map { |name| { kind: "n_plus_one", fix: "preload", association: name } }
    assert_equal "User#employee, #roles; Role#group", Page::FindingGroup.all(findings).first.association
    assert_equal "User#tokens", Page::FindingGroup.all([Profiles::TOKENS_FINDING]).first.association
    alone = Page::FindingGroup.all([{ kind: "duplicate" }]).first
    assert_equal [nil, []], [alone.association, alone.loaded]
  end

  def test_a_statement_that_is_slow_does_not_repeat
    slow = Profiles::EMPLOYEE_FINDING.merge(kind: "slow_query", count: 1, fix: "add an index", total_ns: 180_000_000)
    assert_equal "Slow statements: 180 ms in the database, of 213 ms in all.", headline(Profiles.slow(findings: [slow])).text
    both = headline(Profiles.slow(findings: [slow, Profiles::TOKENS_FINDING]))
    assert_equal "162 of 325 queries repeat: 12.4 ms in the database, of 213 ms in all. And 1 other finding.", both.text
    assert_equal "add an index", both.next_step
  end

  def test_answers_of_the_query_cache_spend_no_time_in_the_database
    answered = Profiles::EMPLOYEE_FINDING.merge(kind: "cached_repeat", count: 19, total_ns: 4_000_000, objects: 1_900, fix: nil)
    result = Profiles.slow(findings: [answered])
    assert_equal "Answered by the query cache again and again: at most 4.00 ms, of 213 ms in all.", headline(result).text
    assert_includes result.to_html, "<p class=\"small\">at most 4.00 ms</p>"
    assert_includes result.to_text, "through User#employee for 162 records loaded at #{Profiles::CONTROLLER}:8, " \
                                    "answered by the query cache for at most 4.0 ms and 1900 objects"
  end

  def test_a_comparison_lists_improved_removed_and_solved_items
    comparison = Page::Comparison.new(Profiles.slow, Profiles.fast)
    time, sql = comparison.figures
    assert_equal ["Time", "better", 17], [time.name, time.verdict, time.factor.round]
    assert_equal %w[SQL better], [sql.name, sql.verdict]
    assert_equal [["gone", 162, 0], ["gone", 162, 0]], comparison.statements.map { |one| [one.kind, one.before, one.after] }
    assert_equal [2, 0, 0], [comparison.solved, comparison.remaining, comparison.added].map(&:size)
    assert_equal [], comparison.remarks
  end

  def test_findings_with_one_fix_are_compared_one_by_one
    both = %w[employee groups].map { |name| { kind: "n_plus_one", association: "User##{name}", fix: "the same", count: 2 } }
    comparison = Page::Comparison.new(Profiles.slow(findings: both), Profiles.slow(findings: both.first(1)))
    assert_equal [%w[User#groups], %w[User#employee], []],
                 [comparison.solved, comparison.remaining, comparison.added].map { |groups| groups.map(&:association) }
  end

  def test_a_reversed_comparison_lists_new_items
    comparison = Page::Comparison.new(Profiles.fast, Profiles.slow)
    assert_equal %w[new new], comparison.statements.map(&:kind)
    assert_equal [0, 2], [comparison.solved, comparison.added].map(&:size)
    assert_equal "worse", comparison.figures.first.verdict
  end

  def test_times_that_differ_by_noise_are_the_same_and_counts_are_exact
    figures = Page::Comparison.new(Profiles.slow, Profiles.slow(duration_ns: 215_000_000, response_bytes: 65_977)).figures
    assert_equal %w[same worse], %w[Time Response].map { |name| figures.find { |figure| figure.name == name }.verdict }
  end

  def test_a_comparison_names_its_reservations
    other = Profiles.deep(depth: "cpu", endpoint: "GET posts#index", status: 500, response_bytes: 2,
                          truncated: { queries: 3, bytes: false }, objects: { count: 1, scope: "process", overlapping: 2 })
    assert_equal 6, Page::Comparison.new(Profiles.slow, other).remarks.size
  end

  def test_memory_is_compared_where_both_have_it
    [Profiles.slow, Profiles.deep].permutation { |pair| assert_empty Page::Comparison.new(*pair).memory(:by_file) }
    less = Profiles.deep.memory.merge(by_file: [{ name: Profiles::SERIALIZER, allocated_bytes: 100 }])
    rows = Page::Comparison.new(Profiles.deep, Profiles.deep(memory: less)).memory(:by_file)
    assert_equal [[Profiles::SERIALIZER, -8_099_900], [Profiles::CONTROLLER, -900_000]], rows.map { |row| [row.name, row.difference] }
  end

  # A shell says what it would have run, so no quoting is believed in that it does not understand.
  def test_a_shell_parses_the_curl_command_correctly
    hostile = "/users/'; touch owned; '$(id)`id`\"\\\n!"
    result = Profiles.fast(method: "DELETE", path: hostile, query: "page[size]=2", headers: { "accept" => "a'b", "host" => "h" })
    command = Page::Curl.new(result, origin: "http://localhost:3000", depth: "cpu")
    address = "http://localhost:3000/users/';%20touch%20owned;%20'$(id)`id`\"\\%0A!?page[size]=2"
    assert_equal [address, "--globoff", "-X", "DELETE", "-H", "accept: a'b",
                  "-H", "castellan-profile: cpu"], words_of(command)
    assert_equal 2, command.remarks.size
  end

  def test_the_command_for_curl_asks_for_the_very_address
    result = Profiles.fast(path: "/a#b/../ü", query: "", headers: { "accept" => "" })
    assert_equal ["http://h/a%23b/../%C3%BC", "--path-as-is", "-H", "accept;"], words_of(Page::Curl.new(result, origin: "http://h"))
  end

  def test_markup_is_not_escaped_twice_and_everything_else_is
    assert_equal "&lt;b&gt;&#39;&quot;&amp;", Page::Markup.of("<b>'\"&")
    assert_equal "<b>", Page::Markup.of(Page::Markup.new("<b>"))
    assert_equal "\uFFFDa\uFFFD", Page::Markup.of("\x00a\xFF".b)
    assert_equal "<p>&lt;i&gt;</p>", Page::HtmlTemplate.new("<p><%= '<i>' %></p>").result
  end

  private

  def words_of(command)
    words, = Open3.capture2("sh", stdin_data: "curl() { for word; do printf '%s\\0' \"$word\"; done; }\n#{command}\n")
    words.split("\0")
  end

  def headline(result) = Page::Headline.new(result)
end
