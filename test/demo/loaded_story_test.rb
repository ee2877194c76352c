# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"
require "stringio"

# Steps under load, on a small application that records its requests.
class LoadedStoryTest < Minitest::Test
  FILES = {
    "config.ru" => <<~RUBY,
      run lambda { |env|
        File.write("asked", "\#{ENV["WITH_CASTELLAN"]}\#{env["PATH_INFO"]}\\n", mode: "a")
        [200, { "content-type" => "application/json" }, ["[1]"]]
      }
    RUBY
    "config/puma.rb" => %(bind "tcp://127.0.0.1:\#{ENV.fetch("PORT")}"\nquiet\n)
  }.freeze
  STEPS = [["first", "/a", false], ["last", "/z", false], ["second", "/b", true], ["third", "/c", true]].map do |id, path, castellan|
    { "id" => id, "title" => id, "get" => path, "told" => false, "differs" => [], "with_castellan" => castellan, "code" => "config.ru" }
  end

  def test_two_that_are_compared_are_loaded_in_turns_and_once
    rows, asked = replayed(in_turns: { "first" => "second", "third" => Castellan::Demo::LoadedStory::LIMIT })
    assert_equal %w[first last second third limit], rows.map { |row| row[:id] }
    assert(rows.all? { |row| row[:requests_per_s].positive? && row[:availability] >= 100 }, rows)
    assert_equal ["/a", "1/b"] * 6, asked.first(12), "a warm-up of each, then five turns"
    assert_equal ["/z", "1/b", "1/c"], asked.drop(12).last(3), "the second is asked once more, for its answer"
  end

  def test_without_a_comparison_each_is_loaded_by_itself
    rows, asked = replayed
    assert_equal [5, %w[/a /z 1/b 1/c]], [rows.count { |row| row[:requests_per_s].positive? }, asked]
  end

  private

  # @return [Array(Array<Hash>, Array<String>)] rows, and the recorded requests without repetition
  def replayed(**options)
    Dir.mktmpdir("castellan-loaded-") do |dir|
      write_files(dir, FILES)
      example = Castellan::Demo::Example.new(dir, environment: { "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile") })
      story = Castellan::Demo::Story.new(dir, { "story" => "small", "steps" => STEPS })
      budget = Castellan::Demo::Budget.new(seconds: 1, steps: 5, elapsed: -> { 0 })
      progress = Castellan::Demo::Progress.new(StringIO.new, total: 5)
      programs = Castellan::Demo::Programs.new(Castellan::Demo::Database.new(nil))
      loaded = Castellan::Demo::LoadedStory.new(story, { nil => example }, budget: budget, progress: progress, programs: programs,
                                                                           **options)
      rows = []
      loaded.call { |row| rows << row }
      rows << loaded.limit("third")
      [rows, File.readlines(File.join(dir, "asked"), chomp: true).slice_when { |one, other| one != other }.map(&:first)]
    end
  end
end
