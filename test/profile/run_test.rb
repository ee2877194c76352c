# frozen_string_literal: true

require "test_helper"
require "profile/profile_world"
require "json"

# Profiles a block, as at the console.
class ProfileRunTest < Minitest::Test
  include ProfileWorld

  Profile = Castellan::Profile

  def test_it_summarizes_a_block
    run = Profile.run { careless }
    assert_equal [1 + BOOKS, "n_plus_one", "sql"], [run.queries.size, run.findings.first[:kind], run.depth]
    text = run.to_text
    assert_match(/\AA block: [\d.]+ ms\n/, text)
    assert_match(/^SQL [\d.]+ ms in 13 queries, rendering 0 ms/, text)
    assert_match(/^ +12 × +[\d.]+ [mµ]s  select authors\.\* from authors where authors\.id = \? limit \?\n +test.profile.profile_world\.rb/,
                 text)
    assert_match(/^finding: n_plus_one: 12 queries at .*add \.preload\(:author\)/, text)
  end

  def test_a_result_is_read_back_from_its_json
    run = Profile.run(depth: :memory) { careless }
    assert_equal run, Profile::Result.from_h(JSON.parse(run.to_json))
    assert_equal run, Profile::Result.from_h(JSON.parse(JSON.generate(run)))
  end

  def test_a_result_is_one_html_file
    html = Profile.run { careless }.to_html
    assert_match(/\A<!DOCTYPE html>/i, html)
    assert_includes html, "select authors.* from authors"
  end

  def test_memory_and_samples_as_text
    kept = nil
    assert_match(/ kB in [\d,]+ objects allocated, [\d.]+ kB in [\d,]+ retained\n.*run_test\.rb:#{__LINE__ + 1}/,
                 Profile.run(depth: :memory) { kept = Array.new(1_000) { |number| "text #{number} " * 10 } }.to_text)
    assert_equal 1_000, kept.size
    number = 0
    assert_match(/ %  .*run_test\.rb:#{__LINE__}/, Profile.run(depth: :cpu) { number += 1 while number < 9_000_000 }.to_text)
  end

  def test_errors_of_the_block_propagate
    assert_raises(KeyError) { Profile.run { raise KeyError } }
    refute Castellan::Instrument.subscribed?
    assert_nil Castellan::Recording.current
  end

  def test_an_unknown_depth_raises
    assert_includes assert_raises(Castellan::ConfigurationError) { Profile.run(depth: :memroy) { 1 } }.message, "write one of sql, memory"
  end

  def test_with_castellan_off_the_block_runs_and_nothing_is_recorded
    with_env("CASTELLAN" => "off") do
      ran = false
      assert_empty(Profile.run { ran = careless.any? }.queries)
      assert ran
    end
  end

  def test_nested_runs
    inner = nil
    outer = Profile.run do
      Book.count
      inner = Profile.run { Author.count }
    end
    assert_equal [1, 2], [inner.queries.size, outer.queries.size]
  end

  def test_views_and_caches_are_recorded_from_their_notifications
    run = Profile.run do
      ActiveSupport::Notifications.instrument("render_template.action_view", identifier: "#{Castellan::CallSite.root}/app/views/a.erb") { Book.count }
      ActiveSupport::Notifications.instrument("render.active_model_serializers", serializer: ProfileRunTest) { nil }
      ActiveSupport::Notifications.instrument("cache_read.active_support", key: "private", hit: true) { nil }
      ActiveSupport::Notifications.instrument("cache_read_multi.active_support", key: %w[a b], hits: %w[a]) { nil }
      ActiveSupport::Notifications.instrument("cache_write.active_support", key: "private") { nil }
    end
    assert_equal [["render", "app/views/a.erb"], %w[render ProfileRunTest]], run.spans.map { |span| span.values_at(:kind, :name) }
    assert_equal [%w[rails hit], %w[rails part], %w[rails write]], run.cache.map { |look| look.values_at(:layer, :outcome) }
    assert_operator run.parts[:render_ns], :<=, run.spans.sum { |span| span[:duration_ns] } - run.parts[:sql_ns]
    refute_includes run.to_json, "private"
  end

  def test_views_have_no_subscribers_without_a_recording
    before = ActiveSupport::Notifications.notifier.listening?("render_template.action_view")
    Profile.run { assert ActiveSupport::Notifications.notifier.listening?("render_template.action_view") }
    assert_equal before, ActiveSupport::Notifications.notifier.listening?("render_template.action_view")
  end
end
