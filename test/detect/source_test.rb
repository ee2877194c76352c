# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class DetectSourceTest < Minitest::Test
  Source = Castellan::Detect::Source

  def test_calls_at_a_line_come_with_their_receivers_and_arguments
    each_line("users.each do |user|\n  user.tokens\n      .where(on_behalf: false)\n      .last.id\nend", 4) do |line|
      assert_equal ["where(on_behalf: false)", "last", "id"], line.steps(:tokens).first.map(&:written)
      assert_equal "false", line.value("on_behalf").text
      refute line.calls?(:each)
    end
  end

  def test_arguments_may_be_written_without_parentheses_and_over_several_lines
    each_line("user.tokens.find_by on_behalf: false,\n   secret: \"x\"", 1) do |line|
      assert_equal ['find_by(on_behalf: false, secret: "x")'], line.steps(:tokens).first.map(&:written)
      assert line.steps(:tokens).first.first.arguments.all?(&:constant?)
    end
  end

  def test_each_position_on_a_line_has_its_steps
    each_line("[user.tokens.where(a: 1).count, user.tokens.count]", 1) do |line|
      assert_equal [["where(a: 1)", "count"], ["count"]], line.steps(:tokens).map { |steps| steps.map(&:written) }
    end
  end

  def test_values_that_may_change_are_not_constant
    { "1" => true, "'a'" => true, ":a" => true, "nil" => true, "[1, 2]" => true, "1..2" => true, "RUBY_VERSION" => true, "x" => false,
      "\"\#{x}\"" => false, "x.y" => false, "[x]" => false, "String" => false }.each do |code, constant|
      each_line("a.where(b: #{code})", 1) { |line| assert_equal constant, line.value("b").constant?, code }
    end
  end

  def test_constants_are_named_as_in_the_source
    each_line("A::B.find(C)", 1) { |line| assert_equal %w[A::B C], line.constants }
  end

  def test_alternatives_and_locks_are_recognized
    each_line("a.first || a.last", 1) { |line| assert_predicate line, :alternatives? }
    each_line("a.first.with_lock { b }", 1) { |line| assert_predicate line, :locks? }
    each_line("def a\n  prices.loaded? ? prices.to_a : \n prices.find_by(b: c)\nend", 3) do |line|
      assert_equal [true, false], [line.asks_loaded?(:prices), line.asks_loaded?(:costs)]
    end
  end

  def test_texts_that_the_parser_would_change_are_not_repeated
    texts = { "'a b'" => '"a b"', ":a" => ":a", "params[:id]" => "params[:id]", "'a\\n'" => "…", '"a\\n"' => "…", "\"\#{x}\"" => "…" }
    texts.each do |code, text|
      each_line("a.where(b: #{code})", 1) { |line| assert_equal text, line.value("b").text, code }
    end
  end

  def test_a_line_with_a_syntax_error_has_no_calls
    assert_empty Source.at(nil).calls
    each_line("def (", 1) { |line| refute_predicate line, :locks? }
  end

  private

  def each_line(text, number)
    yield Source.new(Source::Parser.parse(text).all, number)
  end
end
