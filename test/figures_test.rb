# frozen_string_literal: true

require "test_helper"
require "castellan/figures"

class FiguresTest < Minitest::Test
  Figures = Castellan::Figures

  def test_durations_have_three_significant_digits_and_a_unit
    { 340_000 => "0.34 ms", 9_070_000 => "9.07 ms", 9_999_000 => "10.0 ms", 12_400_000 => "12.4 ms", 99_970_000 => "100 ms",
      212_600_000 => "213 ms", 7_795_400_000 => "7,795 ms", 61_000_000_000 => "61.0 s", 90_000 => "90.0 µs", 0 => "0 ms", nil => "–" }
      .each { |nanoseconds, text| assert_equal text, Figures.duration(nanoseconds) }
    assert_equal [1.235, nil], [1_234_567, nil].map { |nanoseconds| Figures.milliseconds(nanoseconds) }
  end

  def test_numbers_have_three_significant_digits_and_whole_numbers_all
    { 7_795.4 => "7,795", 100.0 => "100", 54.35 => "54.4", 9.184 => "9.18", 0.31 => "0.31", 0 => "0", 1_139 => "1,139",
      4_119_179 => "4,119,179", 12 => "12", nil => "–" }.each { |value, text| assert_equal text, Figures.number(value) }
  end

  def test_bytes_have_a_unit
    { 0 => "0 B", 999 => "999 B", 6_000 => "6.00 kB", 65_976 => "66.0 kB", 436_700_000 => "437 MB", 2_300_000_000 => "2.30 GB", nil => "–" }
      .each { |size, text| assert_equal text, Figures.bytes(size) }
  end

  def test_counted_nouns_have_a_plural
    assert_equal ["1 query", "2,000 queries"], [1, 2_000].map { |number| Figures.counted(number, "query") }
    assert_equal "0 bytes", Figures.counted(0, "byte")
  end

  def test_percents_have_no_trailing_zeros
    { 100.0 => "100 %", 99.97 => "99.97 %", 99.5 => "99.5 %", 0.0 => "0 %", 50 => "50 %" }
      .each { |value, text| assert_equal text, Figures.percent(value) }
    assert_equal ["33 %", "< 1 %", "0 %", "–"], [[1, 3], [1, 1_000], [0, 3], [0, 0]].map { |pair| Figures.share(*pair) }
  end

  def test_times_have_a_unit
    assert_equal ["1.6 ×", "1.0 ×", "41 ×", "2,621 ×", "0.05 ×"], [1.61, 0.96, 41.3, 2_620.6, 0.0503].map { |factor| Figures.times(factor) }
  end

  def test_the_median_is_in_the_middle
    assert_equal [2, 2.5, 7], [[3, 1, 2], [4, 1, 3, 2], [7]].map { |values| Figures.median(values) }
  end
end
