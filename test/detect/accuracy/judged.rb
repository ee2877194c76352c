# frozen_string_literal: true

require "castellan/detect"
require "castellan/instrument/threads"
require "castellan/instrument/drivers"
require_relative "samples"

module Accuracy
  # Compares Castellan's findings in a sample with its labels.
  #
  #   judged = Judged.new(sample, Accuracy::Records)
  #   judged.missed      # => [Expectation], labelled and not found
  #   judged.invented    # => [Expectation], found and not labelled
  class Judged
    attr_reader :findings

    def initialize(sample, world)
      @sample = sample
      @findings = Castellan::Detect.watch(slow_ms: nil) { sample.run(world) }
    end

    def right? = missed.empty? && invented.empty?

    # @return [Array<Expectation>]
    def missed = left_over.first

    # @return [Array<Expectation>]
    def invented = left_over.last

    # @return [String]
    def to_s
      ["missed: #{missed.join("; ")}", "invented: #{invented.join("; ")}", *findings].join("\n  ")
    end

    private

    # Matches each label with one finding.
    def left_over
      @left_over ||= begin
        rest = found
        missed = @sample.expected.reject do |label|
          index = rest.index(label)
          rest.delete_at(index) if index
        end
        [missed, rest]
      end
    end

    def found
      findings.map do |finding|
        path, line = finding.location.to_s.split(/:(?=\d+\z)/)
        line = File.expand_path(path.to_s, Castellan::CallSite.root) == @sample.path ? Integer(line) : nil
        line = nil unless @sample.lines.cover?(line)
        Expectation.new(kind: finding.kind, line: line, count: finding.count, association: short(finding.association))
      end
    end

    def short(association) = association&.sub(/\A.*::/, "")
  end
end
