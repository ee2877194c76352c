# frozen_string_literal: true

require "test_helper"
Castellan::Serialize && Castellan::Rows

# Ids::List parses lists of ids as databases write them: in C what it can, anything else in Ruby.
class IdListTest < Minitest::Test
  LARGEST = (2**63) - 1
  TEXTS = [
    [], [nil], ["3"], ["3,1", nil, "1,2", "3"], ["0,-1,10"], ["1" * 17], ["1" * 18], [LARGEST.to_s, "7"], ["b,2", "2"], ["1".b, "1"],
    ["1,2,"], ["7".encode(Encoding::UTF_16LE)]
  ].freeze

  def test_ids_of_a_column_equal_its_texts
    TEXTS.each do |texts|
      rows = texts.map { |text| ["other", text] }
      assert_equal answer { list.distinct(texts.compact) }, answer { list.in_column(rows, 1) }, texts.inspect
    end
  end

  def test_ids_are_unique_in_order_of_first_appearance
    assert_equal [3, 1, 2], list.in_column([[7, "3,1"], [8, nil], [9, "1,2"], [10, "3"]], 1)
    assert_equal (1..2_000).to_a, list.in_column((1..2_000).map { |id| ["#{id},1"] }, 0)
  end

  def test_a_column_without_rows
    assert_equal [], list.in_column([[1], [2]], 5)
  end

  def test_integers_of_a_result_are_written_as_array_text
    needs :postgres
    require "pg"
    connection = PG.connect(Castellan::TestServers.postgres_url)
    { "VALUES (1), (NULL), (-7)" => "{1,-7}", "VALUES (#{LARGEST}), (#{-LARGEST - 1})" => "{#{LARGEST},#{-LARGEST - 1}}",
      "SELECT id FROM generate_series(1, 3000) id" => "{#{(1..3_000).to_a.join(",")}}", "SELECT NULL::integer" => "{}",
      "SELECT 1 WHERE false" => nil, "VALUES ('a')" => nil, "VALUES (#{"1" * 30}::numeric)" => nil }.each do |sql, text|
      result = connection.exec(sql)
      assert_equal [text, (result.ntuples if text)], [list.of(result)&.to_s, list.of(result)&.size], sql
    end
  ensure
    connection&.close
  end

  private

  def list = Castellan::Rows::Ids::List

  def answer
    yield
  rescue EncodingError => error
    error.class
  end
end
