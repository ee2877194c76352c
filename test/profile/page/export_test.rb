# frozen_string_literal: true

require "test_helper"
require "support/browsing"
require "support/profiles"
require "tmpdir"

# The export: one file that a person opens from the disk, years later, without a network.
class ProfilePageExportTest < Minitest::Test
  include Castellan::Browsing

  Profiles = Castellan::Profiles
  SPEEDSCOPE_TRIES = ["script-src eval"].freeze

  def test_the_file_asks_for_nothing_and_is_refused_nothing
    open_export(Profiles.slow) do |page|
      assert_equal 1, asked(page).size
      assert_equal [], violations(page)
      assert_includes page.at_css(".headline").text, "324 of 325 queries repeat"
      assert_equal [], page.css("a").map { |link| link.attribute("href") }.reject { |link| link.start_with?("#") }
    end
  end

  def test_the_flame_graph_is_in_the_file
    open_export(Profiles.deep) do |page|
      frame = flame(page)
      frame.evaluate("[...document.querySelectorAll('div')].findLast((one) => one.textContent.endsWith('Sandwich')).click()")
      await_in(frame, "document.body.innerText.includes('UserIndexSerializer#employee_id')")
      assert_equal 1, asked(page).size
      assert_empty violations(page) - SPEEDSCOPE_TRIES
    end
  end

  def test_a_block_is_no_request
    open_export(Castellan::Profile.run { Array.new(3) }) do |page|
      assert_equal "A block of code", page.at_css("h1").text.strip
      assert_equal [nil, nil], [page.at_css("#request"), page.at_css("h1 .badge")]
      assert_includes page.at_css("main").text, 'Castellan::Profile.run(depth: "memory")'
    end
  end

  def test_themes_hold_in_the_file
    open_export(Profiles.slow, scheme: "dark") do |page|
      assert_equal [], page.evaluate(TOO_FAINT)
      press(page, "input[name=theme][value=light] + span")
      assert_equal "rgb(245, 246, 244)", page.evaluate("getComputedStyle(document.body).backgroundColor")
    end
  end

  def test_a_file_without_a_flame_graph_is_small
    assert_operator Castellan::Profile::Page::Export.new(Profiles.slow).to_s.bytesize, :<, 200_000
  end

  def test_a_downloaded_file_is_the_same_and_is_not_shown_in_place
    response = Castellan::Profile::Page.new(store: Profiles.kept(Profiles.slow)).call(
      "REQUEST_METHOD" => "GET", "PATH_INFO" => "/castellan/requests/slow.html", "HTTP_HOST" => "localhost:3000"
    )
    assert_equal 'attachment; filename="castellan-slow.html"', response[1]["content-disposition"]
    assert_equal Castellan::Profile::Page::Export.new(Profiles.slow).to_s, response[2].join
  end

  def test_a_downloaded_file_forbids_frames_in_its_header
    response = Castellan::Profile::Page.new(store: Profiles.kept(Profiles.deep)).call(
      "REQUEST_METHOD" => "GET", "PATH_INFO" => "/castellan/requests/deep.html", "HTTP_HOST" => "localhost:3000"
    )
    header, meta = response[1]["content-security-policy"], Castellan::Profile::Page::Export.new(Profiles.deep).policy
    assert_equal ["#{meta}; frame-ancestors 'none'", false], [header, meta.include?("frame-ancestors")]
    assert_equal "DENY", response[1]["x-frame-options"]
  end

  # A policy in a meta element cannot forbid frames.
  def test_a_kept_file_shows_nothing_in_a_frame_of_another_page
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "profile.html"), Castellan::Profile::Page::Export.new(Profiles.slow).to_s)
      File.write(page = File.join(dir, "other.html"), "<!DOCTYPE html><title>other</title><iframe src='profile.html'></iframe>")
      browse("file://#{page}") do |other|
        frame = other.frames.last
        await_in(frame, "document.readyState === 'complete'")
        assert_equal 0, frame.evaluate("document.documentElement.getClientRects().length")
        assert_equal [], violations(other)
      end
    end
  end

  private

  def open_export(result, **options)
    Dir.mktmpdir do |dir|
      File.write(path = File.join(dir, "profile.html"), Castellan::Profile::Page::Export.new(result).to_s)
      browse("file://#{path}", **options) { |page| yield page }
    end
  end

  def flame(page)
    await(page, "document.querySelector('iframe.flame')")
    frame = page.frames.last
    await_in(frame, "document.body && document.body.innerText.includes('Left Heavy')")
    frame
  end

  def await_in(frame, condition)
    frame.evaluate_async("const look = () => (#{condition}) ? arguments[0](true) : setTimeout(look, 20); look()", 20)
  end
end
