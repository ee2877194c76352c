# frozen_string_literal: true

# Asks one detector about every sample: one JSON object a line. Started by benchmark/detect_accuracy.rb.
#
#   ruby run.rb bullet [URL of a PostgreSQL for the samples of pg]
require "json"
require "tmpdir"
require "active_record"
require "active_support/backtrace_cleaner"
require_relative "detectors"

detector = DetectAccuracy::Detectors.of(ARGV.fetch(0))
require_relative "../../test/detect/accuracy/cases/record_samples"
require_relative "../../test/detect/accuracy/cases/unusual_record_samples"
require_relative "../../test/detect/accuracy/cases/everyday_record_samples"
require_relative "../../test/detect/accuracy/cases/dataset_samples"
require_relative "../../test/detect/accuracy/cases/unusual_dataset_samples"
require_relative "../../test/detect/accuracy/cases/everyday_dataset_samples"
require_relative "../../test/detect/accuracy/cases/sqlite3_samples"
require_relative "../../test/detect/accuracy/cases/pg_samples"

sets = { Accuracy::Records => %i[RecordSamples UnusualRecordSamples EverydayRecordSamples],
         Accuracy::Datasets => %i[DatasetSamples UnusualDatasetSamples EverydayDatasetSamples] }
groups = sets.flat_map { |world, names| names.map { |name| [world.const_get(name), world] } }.to_h
groups[Accuracy::Sqlite3Samples] = Accuracy::Sqlite3Samples
groups[Accuracy::PgSamples] = Accuracy::PgSamples if ARGV[1]

Dir.mktmpdir("castellan-accuracy") do |directory|
  database = { adapter: "sqlite3", database: File.join(directory, "records.sqlite3"), pool: 20 }
  ActiveRecord::Base.establish_connection(database)
  Accuracy::Records.connect(database)
  Accuracy::Sqlite3Samples.connect
  Accuracy::PgSamples.connect(ARGV[1]) if ARGV[1]

  puts JSON.generate(version: Gem.loaded_specs.fetch(ARGV[0]).version.to_s)
  groups.each do |samples, world|
    samples.samples.each do |sample|
      said = detector.sees?(sample.group) ? detector.call(sample, world) : { found: nil }
      puts JSON.generate(said.merge(group: sample.group, kind: sample.kind, title: sample.title, expected: sample.expected.map(&:to_s),
                                    kinds: sample.expected.map(&:kind)))
    end
  end
end
