# frozen_string_literal: true

require "test_helper"
require_relative "judged"

class SequelAccuracyTest < Minitest::Test
  Accuracy::Samples.load("dataset").flat_map(&:samples).each do |sample|
    define_method("test_#{sample.kind}: #{sample.title}") do
      judged = Accuracy::Judged.new(sample, Accuracy::Datasets)
      assert_equal sample.wrong.nil?, judged.right?, judged.to_s
    end
  end
end
