# frozen_string_literal: true

require "test_helper"

class HTTPTimestampTest < Minitest::Test
  Timestamp = Castellan::HTTP::Timestamp
  TIME = Time.utc(1994, 11, 6, 8, 49, 37)

  def test_reads_the_three_formats_of_rfc_9110
    assert_equal TIME, Timestamp.parse("Sun, 06 Nov 1994 08:49:37 GMT")
    assert_equal TIME, Timestamp.parse("Sunday, 06-Nov-94 08:49:37 GMT")
    assert_equal TIME, Timestamp.parse("Sun Nov  6 08:49:37 1994")
  end

  def test_writes_imf_fixdate_in_gmt
    assert_equal "Sun, 06 Nov 1994 08:49:37 GMT", Timestamp.format(TIME.getlocal("+05:00"))
    assert_equal TIME, Timestamp.parse(Timestamp.format(TIME + 0.9))
  end

  def test_what_is_not_a_date_is_nil
    ["", nil, "0", "yesterday", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:61:00 GMT",
     "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
     "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "\xFF\xFE", "Sun, 06 Nov 1994 08:49:37 GMT\n"].each do |text|
      assert_nil Timestamp.parse(text), text.inspect
    end
  end

  def test_two_digits_more_than_fifty_years_ahead_are_the_past_century
    year = Time.now.utc.year
    assert_equal year + 49, Timestamp.parse(format("Sunday, 06-Nov-%02d 08:49:37 GMT", (year + 49) % 100)).year
    assert_equal year + 51 - 100, Timestamp.parse(format("Sunday, 06-Nov-%02d 08:49:37 GMT", (year + 51) % 100)).year
  end
end
