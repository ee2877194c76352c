# frozen_string_literal: true

require "test_helper"
require_relative "judged"
require_relative "cases/dataset_samples"
require_relative "cases/unusual_dataset_samples"
require_relative "cases/everyday_dataset_samples"

class SequelAccuracyTest < Minitest::Test
  [Accuracy::Datasets::DatasetSamples, Accuracy::Datasets::UnusualDatasetSamples,
   Accuracy::Datasets::EverydayDatasetSamples].flat_map(&:samples).each do |sample|
    define_method("test_#{sample.kind}: #{sample.title}") do
      judged = Accuracy::Judged.new(sample, Accuracy::Datasets)
      assert judged.right?, judged.to_s
    end
  end
end
