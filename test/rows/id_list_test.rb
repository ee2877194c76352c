# frozen_string_literal: true

require "test_helper"
Castellan::Resource && Castellan::Rows

# Ids as databases write lists of them: what C reads, and what is left to Ruby because it is anything else.
class IdListTest < Minitest::Test
  LARGEST = (2**63) - 1
  TEXTS = [
    [], [nil], ["3"], ["3,1", nil, "1,2", "3"], ["0,-1,10"], ["1" * 17], ["1" * 18], [LARGEST.to_s, "7"], ["b,2", "2"], ["1".b, "1"],
    ["1,2,"], ["7".encode(Encoding::UTF_16LE)]
  ].freeze

  def test_ids_of_a_column_are_those_of_its_texts
    TEXTS.each do |texts|
      rows = texts.map { |text| ["other", text] }
      assert_equal answer { list.distinct(texts.compact) }, answer { list.in_column(rows, 1) }, texts.inspect
    end
  end

  def test_each_id_is_there_once_in_the_order_in_which_it_comes_first
    assert_equal [3, 1, 2], list.in_column([[7, "3,1"], [8, nil], [9, "1,2"], [10, "3"]], 1)
    assert_equal (1..2_000).to_a, list.in_column((1..2_000).map { |id| ["#{id},1"] }, 0)
  end

  def test_a_column_that_no_row_has
    assert_equal [], list.in_column([[1], [2]], 5)
  end

  private

  def list = Castellan::Rows::IdList

  def answer
    yield
  rescue EncodingError => error
    error.class
  end
end
