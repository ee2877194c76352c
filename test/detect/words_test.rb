# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class DetectWordsTest < Minitest::Test
  LineItem = Class.new
  Category = Class.new
  Salesperson = Class.new

  def test_models_are_counted_as_in_a_sentence
    words = Castellan::Detect::Words
    assert_equal ["1 line item", "2 line items"], [1, 2].map { |number| words.counted(number, LineItem) }
    assert_equal ["1 category", "0 categories"], [1, 0].map { |number| words.counted(number, Category) }
    assert_equal "salespeople", words.plural(Salesperson)
  end
end
