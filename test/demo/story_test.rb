# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"

class StoryTest < Minitest::Test
  Story = Castellan::Demo::Story

  def test_the_stories_of_the_examples_are_read
    %w[users posts mail_logs].each do |name|
      story = Story.read(File.join(ROOT, "examples", name))
      assert_equal name, story.name
      story.steps.each { |step| assert_path_exists File.join(ROOT, story.code(step)), step.id }
    end
  end

  def test_a_step_is_compared_with_an_earlier_corrected_one
    %w[users posts mail_logs].each do |name|
      story = Story.read(File.join(ROOT, "examples", name))
      story.steps.each_with_index do |step, index|
        next unless step.compared_with

        refute(story.steps.first(index).find { |other| other.id == step.compared_with }.told, step.id)
      end
    end
  end

  def test_a_key_that_no_step_has_names_the_nearest
    error = assert_raises(Castellan::ConfigurationError) { story("steps" => [{ "id" => "a", "titel" => "A" }]) }
    assert_includes error.message, "examples/x/steps.yml: titel is no key of a step"
    assert_includes error.message, "title"
  end

  def test_a_story_can_be_narrowed_to_steps_that_follow_each_other
    whole = story("steps" => %w[a b c].map { |id| { "id" => id, "compared_with" => "z", "story_value" => { "duration_ms" => 1 } } },
                  "unchanged" => ["/a"])
    part = whole.only(%w[a c], as: "part")
    assert_equal [["a", nil, nil], ["c", "a", nil]], part.steps.map { |step| [step.id, step.compared_with, step.story_value] }
    assert_equal ["part", [], "x", 3], [part.name, part.unchanged, whole.name, whole.steps.size]
  end

  def test_steps_are_left_out
    whole = story("steps" => %w[a b c].map { |id| { "id" => id } })
    assert_equal [%w[a c], 3], [whole.without(%w[b]).steps.map(&:id), whole.steps.size]
  end

  def test_a_step_with_castellan_leads_to_one_without_and_adds_up_what_differs
    steps = [["a", nil, "/x", false], ["b", "a", "/y", true], ["c", "b", "/z", true]]
    story = story("steps" => steps.map { |id, other, differs, castellan|
      { "id" => id, "compared_with" => other, "differs" => [differs], "with_castellan" => castellan }
    })
    assert_equal [story.step("a"), %w[/z /y]], story.without_castellan(story.step("c"))
    assert_nil story.without_castellan(story.step("a"))
  end

  private

  def story(source) = Story.new("examples/x", { "story" => "x", **source })
end
