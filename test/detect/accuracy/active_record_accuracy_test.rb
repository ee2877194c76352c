# frozen_string_literal: true

require "test_helper"
require_relative "judged"
require_relative "records"

class ActiveRecordAccuracyTest < Minitest::Test
  DIRECTORY = Dir.mktmpdir("castellan-accuracy")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }
  Accuracy::Records.connect(adapter: "sqlite3", database: File.join(DIRECTORY, "records.sqlite3"), pool: 20, idle_timeout: 0)

  Accuracy::Samples.load("record").flat_map(&:samples).each do |sample|
    define_method("test_#{sample.kind}: #{sample.title}") do
      judged = Accuracy::Judged.new(sample, Accuracy::Records)
      assert_equal sample.wrong.nil?, judged.right?, judged.to_s
    end
  end
end
