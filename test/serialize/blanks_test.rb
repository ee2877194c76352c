# frozen_string_literal: true

require "test_helper"

# Values are filled into the holes of a body, in C and in Ruby.
class BlanksTest < Minitest::Test
  Blanks = Castellan::Serialize::Blanks

  def test_both_ways_fill_random_bodies_alike
    random = Random.new(7)
    500.times do
      body = Array.new(random.rand(200)) { "aé\"日\0".chars.sample(random: random) }.join
      offsets = Array.new(random.rand(6)) { random.rand(body.bytesize + 1) }.sort
      blanks = Blanks.of(offsets.flat_map { |offset| [offset, 0, "1"] })
      values = offsets.map { |offset| ["true", "null", "\"ü#{"x" * offset}\"".b].sample(random: random) }
      assert_equal blanks.interleave(body, values), blanks.fill(body, values)
      assert_equal Encoding::UTF_8, blanks.fill(body, values).encoding
    end
  end

  def test_cuts_that_do_not_fit_are_left_to_ruby
    skip_without_extension
    { "a9a*" => ["1"], "a1" => [], "a1a*" => [], "a*" => ["1"], "" => [], "a1a1a*x" => %w[1 2], "b1a*" => ["1"],
      "a99999999999999999999a*" => ["1"] }
      .each { |cuts, values|
      assert_nil Castellan::Native.fill("12345", cuts, values), cuts
    }
    assert_equal "", Castellan::Native.fill("", "a*", [])
    [[nil, "a*", []], ["", nil, []], ["", "a*", nil], ["1", "a1a*", [1]]].each do |arguments|
      assert_raises(TypeError) { Castellan::Native.fill(*arguments) }
    end
  end

  private

  def skip_without_extension = defined?(Castellan::Native) || skip("needs the C extension")
end
