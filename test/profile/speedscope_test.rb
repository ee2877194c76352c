# frozen_string_literal: true

require "test_helper"
require "castellan/profile"

class ProfileSpeedscopeTest < Minitest::Test
  GEM = File.join(Gem.default_dir, "gems/rack-3/lib/rack.rb")
  RACK, HEAD, ROUTER = %w[Rack Head Router].map { |name| [name, GEM, 1] }
  MODEL, VIEW = [["Model", File.join(ROOT, "app/model.rb"), 3], ["View", File.join(ROOT, "app/view.rb"), 4]]
  GARBAGE = ["(garbage collection)", nil, nil].freeze

  def drawn(*stacks)
    flame = Castellan::Profile::Speedscope.of(stacks.map { |stack| [stack, 10] }, name: "GET /", unit: "nanoseconds")
    assert_equal stacks.size * 10, flame["profiles"].first["endValue"]
    flame["profiles"].first["samples"].map { |stack| stack.map { |number| flame["shared"]["frames"][number]["name"] } }
  end

  def test_shared_frames_of_gems_are_omitted_except_the_last
    assert_equal [%w[Router Model], ["(garbage collection)"], %w[Router View]],
                 drawn([RACK, HEAD, ROUTER, MODEL], [GARBAGE], [RACK, HEAD, ROUTER, VIEW])
  end

  def test_frames_that_differ_are_kept
    assert_equal [%w[Head Router Model], %w[Head View]], drawn([RACK, HEAD, ROUTER, MODEL], [RACK, HEAD, VIEW])
    assert_equal [%w[Rack Head], %w[Rack]], drawn([RACK, HEAD], [RACK])
  end

  def test_shared_frames_of_the_application_are_kept
    assert_equal [%w[Head Model Router], %w[Head Model Router View]], drawn([RACK, HEAD, MODEL, ROUTER], [RACK, HEAD, MODEL, ROUTER, VIEW])
    assert_equal [%w[Model]], drawn([MODEL])
  end

  def test_empty_profiles_and_profiles_of_garbage_collection_only
    assert_equal [], drawn
    assert_equal [["(garbage collection)"]], drawn([GARBAGE])
  end
end
