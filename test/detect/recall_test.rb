# frozen_string_literal: true

require "test_helper"
require_relative "accuracy/judged"
require_relative "accuracy/records"

# Castellan finds what Prosopite finds in a shop. Reimplements Prosopite's rule (two statements of one text
# from one call stack, without preloads); a finding must exist for each of its sets.
class DetectRecallTest < Minitest::Test
  DIRECTORY = Dir.mktmpdir("castellan-recall")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }
  Accuracy::Records.connect(adapter: "sqlite3", database: File.join(DIRECTORY, "records.sqlite3"), pool: 20)
  PRELOADS = %r{active_record/relation\.rb.*preload_associations|active_record/validations/uniqueness}

  Accuracy::Samples.load("shop_record").flat_map(&:samples).each do |sample|
    define_method("test_each repeated set of statements is found in #{sample.title}") do
      sets = repeated_sets { sample.run(Accuracy::Records) }
      findings = Castellan::Detect.watch { sample.run(Accuracy::Records) }.select(&:repeats?)
      missed = sets.reject { |(_stack, fingerprint), _count| findings.any? { |finding| finding.fingerprint == fingerprint } }
      assert_empty missed.map { |(_stack, fingerprint), count| "#{count} × #{fingerprint}" }, findings.join("\n")
      assert_operator findings.sum(&:count), :>=, sets.values.sum
    end
  end

  private

  # @return [Hash{Array => Integer}] the number of statements by stack and fingerprint
  def repeated_sets(&work)
    sets = Hash.new(0)
    note = lambda do |*, payload|
      next if payload[:name] == "SCHEMA" || payload[:cached] || !payload[:sql].include?("SELECT")

      stack = caller
      sets[[stack, Castellan::Fingerprint.of(payload[:sql])]] += 1 unless stack.any?(PRELOADS)
    end
    ActiveSupport::Notifications.subscribed(note, "sql.active_record", &work)
    sets.select { |_set, count| count > 1 }
  end
end
