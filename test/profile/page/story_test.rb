# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require_relative "../../../bin/support/screenshots"

# The pages at /castellan of the users example in production, step by step of its story; and the pictures of it.
class ProfilePageStoryTest < Minitest::Test
  include Castellan::Browsing

  def test_the_page_shows_what_is_slow_why_and_the_effect_of_each_step
    needs :chromium
    Castellan::ProfiledStory.told do |story|
      browse(story.link) do |page|
        assert_nil URI(page.url).query, "the token has become a cookie"
        assert_equal story.ids.size, page.css("tr[data-id]").size
        see_the_slow_request(page, story)
        see_the_memory(page, story)
        see_the_flame_graph(page, story)
        see_each_step_beside_the_one_before(page, story)
        assert_empty violations(page)
      end
      see_nothing_without_the_link(story)
      take_pictures(story)
    end
  end

  private

  def see_the_slow_request(page, story)
    page.go_to("#{story.page}/requests/#{story.ids.fetch("index_serializer")}")
    assert_includes page.at_css(".headline").text, "324 of 329 queries repeat"
    places = page.css(".where").map(&:text).join
    assert_includes places, "app/serializers/user_index_serializer.rb:12"
    assert_includes places, "object.employee&.id"
    assert_includes page.css(".fix").map(&:text).join, "add .preload(:employee)"
    assert_operator page.evaluate(SUM_OF_PARTS), :<=, 100.5
  end

  SUM_OF_PARTS = "[...document.querySelectorAll('.stack rect')].reduce((sum, rect) => sum + rect.width.baseVal.value, 0) / 10"
  private_constant :SUM_OF_PARTS

  def see_the_memory(page, story)
    page.go_to("#{story.page}/requests/#{story.ids.fetch("memory")}")
    files = page.css("[aria-label='Memory by file'] tbody th").map { |cell| cell.text.strip }
    assert_operator files.size, :>, 5
    assert_empty files.grep(%r{\A/}), "gems are told by name, the application from its root"
    assert_includes page.at_css("[aria-label='Memory by gem']").text, "active_model_serializers"
  end

  def see_the_flame_graph(page, story)
    page.go_to("#{story.page}/requests/#{story.ids.fetch("wall")}")
    flame = "document.querySelector('iframe.flame').contentDocument"
    await(page, "#{flame}?.body?.innerText.includes('Sandwich')")
    page.evaluate("[...#{flame}.querySelectorAll('div')].findLast((one) => one.textContent.endsWith('Sandwich')).click()")
    await(page, "/Active(Record|Model|Support)\\S*#\\w+/.test(#{flame}.body.innerText)")
    assert_empty violations(page) - ["script-src eval"]
  end

  # The steps are endpoints of their own, so the list proposes none of them as the previous request of another: two are chosen.
  def see_each_step_beside_the_one_before(page, story)
    page.go_to(story.page)
    steps = story.steps.map { |step| story.ids.fetch(step["id"]) }
    links = page.css("tr[data-id] a.step").map { |link| URI.decode_www_form(URI(link.attribute("href")).query).map(&:last) }
    assert_empty steps.each_cons(2).to_a & links
    steps.last(2).zip(%w[a b]) { |id, side| press(page, "tr[data-id='#{id}'] input[name=#{side}]") }
    press(page, ".compare-bar button")
    await(page, "document.querySelector('.sides')")
    story.comparisons.each do |before, after|
      page.go_to("#{story.page}/compare?a=#{story.ids.fetch(before)}&b=#{story.ids.fetch(after)}")
      assert_equal 2, page.css(".side").size, after
    end
    solved = story.ids.fetch_values("index_serializer", "last_login")
    page.go_to("#{story.page}/compare?a=#{solved.first}&b=#{solved.last}")
    assert_includes page.at_css("h1").text, "322 fewer queries, 2 findings solved"
  end

  # As bin/screenshots does.
  def take_pictures(story)
    Dir.mktmpdir do |directory|
      names = %w[requests-dark memory flame compare-last-login]
      files = Castellan::Screenshots.new(directory).of(story, names: names)
      assert_equal names, files.map { |file| File.basename(file, ".png") }
      assert_empty(files.select { |file| File.size(file) < 20_000 }, "pictures with nothing on them")
    end
  end

  # Not even that there is a page.
  def see_nothing_without_the_link(story)
    paths = ["/castellan", "/castellan/requests/#{story.ids.fetch("baseline")}", "/nothing"]
    answers = paths.map { |path| Net::HTTP.get_response(URI.join(story.page, path)) }
    told = answers.map { |answer| [answer.code, answer.body, answer.to_hash.except("x-request-id", "x-runtime", "date")] }
    assert_equal [["404"], 1], [told.map(&:first).uniq, told.uniq.size]
  end
end
