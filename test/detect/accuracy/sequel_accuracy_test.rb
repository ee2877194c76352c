# frozen_string_literal: true

require "test_helper"
require_relative "judged"
require_relative "cases/dataset_samples"
require_relative "cases/unusual_dataset_samples"

class SequelAccuracyTest < Minitest::Test
  [*Accuracy::Datasets::DatasetSamples.samples, *Accuracy::Datasets::UnusualDatasetSamples.samples].each do |sample|
    define_method("test_#{sample.kind}: #{sample.title}") do
      judged = Accuracy::Judged.new(sample, Accuracy::Datasets)
      assert judged.right?, judged.to_s
    end
  end
end
