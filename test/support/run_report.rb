# frozen_string_literal: true

require "json"

module Castellan
  # Writes a summary for bin/test to the file CASTELLAN_RUN_REPORT: the number of skipped tests by reason, the
  # slowest tests with their seconds, and the failures, which bin/test prints again at the end.
  class RunReport < Minitest::AbstractReporter
    SLOWEST = 10

    def initialize(path)
      @path = path
      @skips = Hash.new(0)
      @seconds = {}
      @failures = []
      super()
    end

    def record(result)
      @skips[result.failure.message] += 1 if result.skipped?
      @failures << result.to_s if !result.passed? && !result.skipped?
      @seconds["#{result.klass}##{result.name}"] = result.time
    end

    def report
      slowest = @seconds.max_by(SLOWEST) { |_, seconds| seconds }.to_h
      File.write(@path, JSON.generate(skips: @skips, slowest: slowest, failures: @failures.map { |failure| failure.encode("UTF-8").scrub }))
    end
  end
end

module Minitest
  def self.plugin_castellan_init(_options)
    path = ENV.delete("CASTELLAN_RUN_REPORT") # deleted, so that programs that a test starts do not write it
    reporter << Castellan::RunReport.new(path) if path
  end
end

Minitest.extensions << "castellan"
