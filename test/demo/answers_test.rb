# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"

# The answers of a small application before and after a change: a step that stays stale is an error.
class AnswersTest < Minitest::Test
  EDIT = { "method" => "PUT", "path" => "/", "json" => { "name" => "new" }, "restore" => { "name" => "old" } }.freeze

  def setup
    @title = "old"
    @asked_since = 99
  end

  def test_a_step_that_shows_the_change_passes
    checked("/fresh") { |answers, step, exchange| assert_nil answers.check_edit(step, exchange) }
    assert_equal "old", @title
  end

  def test_a_step_that_stays_stale_is_an_error_and_the_change_is_undone
    checked("/stale") do |answers, step, exchange|
      error = assert_raises(Castellan::Error) { answers.check_edit(step, exchange) }
      assert_equal "small: cached is stale after a change: name: \"new\" before, \"old\" after", error.message
    end
    assert_equal "old", @title
  end

  def test_a_step_may_be_late_for_as_long_as_it_says
    checked("/late", late: 10) { |answers, step, exchange| assert_nil answers.check_edit(step, exchange) }
    checked("/late") { |answers, step, exchange| assert_raises(Castellan::Error) { answers.check_edit(step, exchange) } }
  end

  def test_a_step_whose_304_hides_the_change_is_stale
    checked("/always_304", conditional: true) do |answers, step, exchange|
      assert_raises(Castellan::Error) { answers.check_edit(step, exchange) }
    end
  end

  # /garbage is right without compression, and /fresh does not change while @frozen.
  def test_an_answer_is_compared_as_the_load_gets_it
    assert_raises(Castellan::Error) { checked("/garbage", headers: { "Accept-Encoding" => "gzip" }) { flunk } }
    checked("/garbage") { |answers, step, exchange| assert_nil answers.check_edit(step, exchange) }
  end

  def test_an_edit_without_effect_is_an_error
    @frozen = true
    checked("/fresh") do |answers, step, exchange|
      error = assert_raises(Castellan::Error) { answers.check_edit(step, exchange) }
      assert_equal "small: the edit changes nothing in cached", error.message
    end
  end

  private

  def checked(path, **keys)
    Castellan::TestServers.puma(method(:call)) do |url|
      steps = [{ "id" => "plain", "get" => "/fresh" },
               { "id" => "cached", "get" => path, "compared_with" => "plain", **keys.transform_keys(&:to_s) }]
      story = Castellan::Demo::Story.new("examples/small", { "story" => "small", "edit" => EDIT, "steps" => steps.map { |step|
        { "differs" => [], "told" => false, "with_castellan" => false, **step }
      } })
      exchange = Castellan::Demo::Exchange.new(url, {})
      answers = Castellan::Demo::Answers.new(story)
      story.steps.each { |step| assert_empty answers.check(step, exchange) }
      yield answers, story.steps.last, exchange
    end
  end

  def call(env)
    return change(env) if env["REQUEST_METHOD"] == "PUT"
    return [304, {}, []] if env["HTTP_IF_NONE_MATCH"]
    return [200, { "content-encoding" => "gzip" }, ["garbage"]] if env["PATH_INFO"] == "/garbage" && env["HTTP_ACCEPT_ENCODING"] == "gzip"

    [200, { "content-type" => "application/json", "etag" => '"1"' }, [JSON.generate(name: title(env["PATH_INFO"]))]]
  end

  def change(env)
    @title = JSON.parse(env["rack.input"].read)["name"] unless @frozen
    @asked_since = 0
    [200, { "content-type" => "application/json" }, ["{}"]]
  end

  # "/late" shows a change from the third request on.
  def title(path)
    return @title if %w[/fresh /garbage].include?(path)
    return "old" unless path == "/late"

    (@asked_since += 1) > 2 ? @title : { "old" => "new", "new" => "old" }.fetch(@title)
  end
end
