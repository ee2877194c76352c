# frozen_string_literal: true

# Runs the samples of one ORM on a PostgreSQL, in a process of its own because a model has one database: prints how many there
# were, and those that were judged wrongly.
#
#   ruby -Ilib test/detect/accuracy/on_postgres.rb active_record postgres://…
orm, url = ARGV
if orm == "active_record"
  require_relative "cases/record_samples"
  require_relative "cases/unusual_record_samples"
  require_relative "cases/everyday_record_samples"
  ActiveRecord.async_query_executor = :global_thread_pool
  Accuracy::Records.connect(url)
  world = Accuracy::Records
  samples = [world::RecordSamples, world::UnusualRecordSamples, world::EverydayRecordSamples].flat_map(&:samples)
else
  ENV["ACCURACY_SEQUEL"] = url
  require_relative "cases/dataset_samples"
  require_relative "cases/unusual_dataset_samples"
  require_relative "cases/everyday_dataset_samples"
  world = Accuracy::Datasets
  samples = [world::DatasetSamples, world::UnusualDatasetSamples, world::EverydayDatasetSamples].flat_map(&:samples)
end
require_relative "judged"

wrong = samples.filter_map do |sample|
  judged = Accuracy::Judged.new(sample, world)
  "#{sample.name}: #{judged}" unless judged.right?
end
puts "#{samples.size} samples, #{wrong.size} wrong", wrong
