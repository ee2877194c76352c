# frozen_string_literal: true

# Runs one detector on all samples and prints a JSON object per line; for benchmark/detect_accuracy.rb.
#
#   ruby run.rb bullet [URL of a PostgreSQL for the samples with pg]
require "json"
require "tmpdir"
require "active_record"
require "active_support/backtrace_cleaner"
require_relative "detectors"

detector = DetectAccuracy::Detectors.of(ARGV.fetch(0))
require_relative "../../test/detect/accuracy/samples"

samples = %w[record dataset sqlite3 pg].to_h { |what| [what, Accuracy::Samples.load(what)] }
worlds = { "record" => Accuracy::Records, "dataset" => Accuracy::Datasets, "sqlite3" => Accuracy::Sqlite3Samples }
worlds["pg"] = Accuracy::PgSamples if ARGV[1]

Dir.mktmpdir("castellan-accuracy") do |directory|
  database = { adapter: "sqlite3", database: File.join(directory, "records.sqlite3"), pool: 20 }
  ActiveRecord::Base.establish_connection(database)
  Accuracy::Records.connect(database)
  Accuracy::Sqlite3Samples.connect
  Accuracy::PgSamples.connect(ARGV[1]) if ARGV[1]

  puts JSON.generate(version: Gem.loaded_specs.fetch(ARGV[0]).version.to_s)
  worlds.each do |what, world|
    samples[what].flat_map(&:samples).each do |sample|
      said = detector.sees?(sample.group) ? detector.call(sample, world) : { found: nil }
      puts JSON.generate(said.merge(group: sample.group, kind: sample.kind, title: sample.title, expected: sample.expected.map(&:to_s),
                                    kinds: sample.expected.map(&:kind), wrong: sample.wrong, held_out: sample.held_out?))
    end
  end
end
