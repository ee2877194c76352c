# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class DetectReportTest < Minitest::Test
  Report = Castellan::Detect::Report

  def test_a_header_is_visible_ascii_and_bounded
    header = Report.header(Array.new(60) { |number| finding(location: "app/é\n#{number}.rb:3") })
    assert_match(%r{\An_plus_one 5 app/\?\?0\.rb:3, [ -~]+, and \d+ more\z}, header)
    assert_operator header.bytesize, :<=, Report::LONGEST_HEADER
  end

  def test_a_text_has_the_source_of_each_finding_that_has_one
    known = finding(location: "app/a.rb:3", source: "user.posts")
    assert_equal "2 findings\n  #{known}\n    app/a.rb:3: user.posts\n  #{finding}", Report.text([known, finding])
  end

  def test_annotations_are_at_the_fix_site_and_escaped
    line = Report.github([finding(location: "app/b.rb:3", parent_location: "app/a,b.rb:9", fix: "100 %\nof it")])
    assert_equal "::warning file=app/a%2Cb.rb,line=9::", line[/\A.*?(?<=\d)::/]
    assert_includes line, "100 %25%0Aof it"
    assert_equal 1, line.count("\n")
  end

  def test_a_finding_without_a_line_is_annotated_without_one
    assert_match(/\A::warning::n_plus_one: 5 queries at an unknown place/, Report.github([finding]))
  end

  def test_json_lines_omit_unknown_values
    lines = Report.json_lines([finding, finding(association: "User#posts")], path: "/users")
    assert_equal [{ "path" => "/users", "kind" => "n_plus_one", "count" => 5 },
                  { "path" => "/users", "kind" => "n_plus_one", "count" => 5, "association" => "User#posts" }],
                 lines.lines.map { |line| JSON.parse(line) }
  end

  private

  def finding(**more) = Castellan::Finding.new(kind: :n_plus_one, count: 5, **more)
end
