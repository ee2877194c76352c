# frozen_string_literal: true

require "json"

module Castellan
  # Writes the reasons of all skips to the file named by CASTELLAN_SKIPS (a JSON object, reason => count), for the last line of bin/test.
  class SkipReport < Minitest::AbstractReporter
    def initialize(path)
      @path = path
      @reasons = Hash.new(0)
      super()
    end

    def record(result)
      @reasons[result.failure.message] += 1 if result.skipped?
    end

    def report = File.write(@path, JSON.generate(@reasons))
  end
end

module Minitest
  def self.plugin_castellan_init(_options)
    path = ENV.fetch("CASTELLAN_SKIPS", nil)
    reporter << Castellan::SkipReport.new(path) if path
  end
end

Minitest.extensions << "castellan"
