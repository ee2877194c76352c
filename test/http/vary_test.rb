# frozen_string_literal: true

require "test_helper"

class HTTPVaryTest < Minitest::Test
  def test_adds_each_name_once_whatever_its_case
    assert_equal "Origin, accept", add("Origin, accept", "Accept", "origin")
    assert_equal "Accept, Accept-Encoding", add(nil, "Accept", "Accept-Encoding")
    assert_equal "Accept", add("", "Accept")
  end

  def test_a_star_covers_all
    assert_equal "*", add("*", "Accept")
    assert_equal "*", add("Accept", "*")
  end

  private

  def add(value, *names) = Castellan::HTTP::Vary.add(value, *names)
end
