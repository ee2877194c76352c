# frozen_string_literal: true

require "test_helper"
require_relative "judged"
require_relative "cases/sqlite3_samples"
require_relative "cases/pg_samples"

class RawAccuracyTest < Minitest::Test
  Accuracy::Sqlite3Samples.connect

  Accuracy::Sqlite3Samples.samples.each do |sample|
    define_method("test_#{sample.group}: #{sample.title}") do
      judged = Accuracy::Judged.new(sample, Accuracy::Sqlite3Samples)
      assert_equal sample.wrong.nil?, judged.right?, judged.to_s
    end
  end

  Accuracy::PgSamples.samples.each do |sample|
    define_method("test_#{sample.group}: #{sample.title}") do
      needs :postgres
      Accuracy::PgSamples.connection || Accuracy::PgSamples.connect(Castellan::TestServers.postgres_url)
      judged = Accuracy::Judged.new(sample, Accuracy::PgSamples)
      assert_equal sample.wrong.nil?, judged.right?, judged.to_s
    end
  end
end
