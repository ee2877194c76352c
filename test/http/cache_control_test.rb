# frozen_string_literal: true

require "test_helper"

class HTTPCacheControlTest < Minitest::Test
  def test_writes_flags_before_ages
    assert_equal "public, must-revalidate, max-age=60, s-maxage=600",
                 build(s_maxage: 600, max_age: 60, must_revalidate: true, public: true)
    assert_equal "private, no-cache", build(private: true, no_cache: true, public: false, max_age: nil)
    assert_equal "max-age=0", build(max_age: 0)
    assert_equal "", build
  end

  def test_the_field_can_be_shared
    assert_predicate build(public: true), :frozen?
  end

  def test_contradictions_are_refused
    assert_refused(/for everybody or for one/, public: true, private: true)
    assert_refused(/shared caches/, private: true, s_maxage: 5)
    assert_refused(/no age/, no_store: true, max_age: 5)
  end

  def test_bad_ages_and_unknown_names_are_refused
    assert_refused(/max_age: must be 0 or more seconds, got -1/, max_age: -1)
    assert_refused(/max_age: must be whole seconds, got "soon"/, max_age: "soon")
    assert_refused(/no directive :maxage; there are public/, maxage: 5)
  end

  private

  def build(**directives) = Castellan::HTTP::CacheControl.build(**directives)

  def assert_refused(message, **directives)
    assert_match message, assert_raises(Castellan::ConfigurationError) { build(**directives) }.message
  end
end
