# frozen_string_literal: true

require "test_helper"
require "castellan/ledger"

class LedgerFiguresTest < Minitest::Test
  Figures = Castellan::Ledger::Figures

  def test_numbers_have_significant_digits
    { 7_795.4 => "7,795", 100.0 => "100", 54.35 => "54.4", 9.184 => "9.18", 0.31 => "0.31", 0 => "0", 1_139 => "1,139",
      4_119_179 => "4,119,179", 12 => "12" }.each { |value, text| assert_equal text, Figures.number(value) }
  end

  def test_bytes_have_a_unit
    { 0 => "0 B", 999 => "999 B", 6_000 => "6.0 kB", 209_000 => "209 kB", 436_700_000 => "436.7 MB", 2_300_000_000 => "2.3 GB" }
      .each { |value, text| assert_equal text, Figures.bytes(value) }
  end

  def test_percents_have_no_trailing_zeros
    { 100.0 => "100 %", 99.97 => "99.97 %", 99.5 => "99.5 %", 0.0 => "0 %", 50 => "50 %" }
      .each { |value, text| assert_equal text, Figures.percent(value) }
  end

  def test_times_have_a_unit
    assert_equal ["1.6 ×", "41 ×", "2,621 ×", "0.05 ×"], [1.61, 41.3, 2_620.6, 0.0503].map { |factor| Figures.times(factor) }
  end
end
