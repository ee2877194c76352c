# frozen_string_literal: true

# Runs the samples of one ORM on PostgreSQL, in its own process because a model has one database. Prints the
# number of samples and those with a wrong verdict.
#
#   ruby -Ilib test/detect/accuracy/on_postgres.rb active_record postgres://…
require_relative "judged"

orm, url = ARGV
if orm == "active_record"
  samples = Accuracy::Samples.load("record")
  ActiveRecord.async_query_executor = :global_thread_pool
  Accuracy::Records.connect(url)
  world = Accuracy::Records
else
  ENV["ACCURACY_SEQUEL"] = url
  samples = Accuracy::Samples.load("dataset")
  world = Accuracy::Datasets
end
samples = samples.flat_map(&:samples)
wrong = samples.filter_map do |sample|
  judged = Accuracy::Judged.new(sample, world)
  "#{sample.name}: #{judged}" unless judged.right? == sample.wrong.nil?
end
puts "#{samples.size} samples, #{wrong.size} wrong", wrong
