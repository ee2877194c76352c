# frozen_string_literal: true

require "castellan/version"
require "castellan/errors"
require "castellan/figures"

module Castellan
  module Demo
    # Collects the measurements of a story's steps and compares each step with an earlier one.
    #
    #   ledger = Castellan::Demo::Ledger.new
    #   ledger.add(story: "users", step: "baseline", duration_ms: 812.0, queries: 1_139, story_value: 7_795)
    #   ledger.add(story: "users", step: "includes", duration_ms: 640.0, queries: 1_130)         # verdict "better"
    #   ledger.add(story: "users", step: "as told", duration_ms: 90.0, wrong: "users/3: roles")  # verdict "wrong", never compared
    #   ledger.to_text       # a table for a terminal
    #   ledger.to_json       # an array of rows, see Row::FIELDS
    #   Castellan::Demo::Ledger::ReportFiles.new(ledger).write("castellan-report")
    #
    # Compares a step with the one that `against:` names, or else with the last step of the story that was not
    # wrong; by requests_per_s if present, else by duration_ms. Differences within the tolerance are "same". The
    # first step of a story has no verdict.
    # Not thread-safe.
    class Ledger
      TOLERANCE = 0.05

      # @return [Float] the relative difference up to which figures are the "same"
      attr_reader :tolerance
      # @return [Array<Row>] in the order in which they were added
      attr_reader :rows

      def initialize(tolerance: TOLERANCE)
        raise ConfigurationError, "tolerance: must be from 0 up to 1, got #{tolerance.inspect}" unless (0...1).cover?(tolerance)

        @tolerance = tolerance
        @rows = []
      end

      # @param measurement [Measurement, nil] the cost of one unit of work
      # @param load [#to_h, nil] the result of a load test, see LoadTest::Summary#to_h
      # @param wrong [String, nil] why the response is wrong: the first differing id and member
      # @param reference [Boolean] whether this is a figure for comparison, not a step of the story; it has no
      #   verdict
      # @param fields [Hash] any of Row::FIELDS except verdict, and code: ("path:line"), command:, against:
      # @return [Row]
      # @raise [ConfigurationError] for an unknown field or a duplicate step
      def add(measurement: nil, load: nil, wrong: nil, reference: false, **fields)
        row = Row.build(Row.measured(measurement).merge(load.to_h, fields).merge(reason: wrong, reference: reference))
        raise ConfigurationError, "#{row.story} has a step #{row.step.inspect} already" if find(row.story, row.step)

        @rows << row.with_verdict(Verdict.of(row, before: before(row), tolerance: tolerance))
        @rows.last
      end

      # @return [Hash{String => Array<Row>}] the rows by story, in order
      def stories = rows.group_by(&:story)

      # @return [Row, nil]
      def find(story, step)
        rows.find { |row| row.story == story && row.step == step }
      end

      # Divides the figures of two steps.
      #
      #   ledger.ratio("users", "Castellan resource", "eager loaded")                          # => 41.2, times as fast
      #   ledger.ratio("users", "Castellan resource", "eager loaded", on: :allocated_objects)  # => 512.0, times fewer
      #
      # @return [Float, nil] above 1 if `step` is better; nil if a step or figure is missing
      def ratio(story, step, against, on: nil)
        ours = find(story, step)
        theirs = find(story, against)
        ours && theirs && Verdict.factor(ours, theirs, on: on)
      end

      # @param row [Row]
      # @return [Row, nil] the one that its verdict compares
      def before(row)
        return find(row.story, row.against) if row.against

        earlier = rows.take_while { |other| !other.equal?(row) }
        earlier.reverse_each.find { |other| other.story == row.story && other.step? && !other.wrong? }
      end

      # @return [String] an array of rows; missing fields are null
      def to_json(*_state)
        require "json"
        "[\n#{rows.map { |row| "  #{JSON.generate(row.to_h)}" }.join(",\n")}\n]\n"
      end

      # @return [String] one table per story
      def to_markdown = MarkdownTables.new(self).to_s

      # @param width [Integer] characters per line; the least important columns are omitted until the table
      #   fits
      # @return [String] one table per story, for a terminal
      def to_text(width: terminal_width) = MarkdownTables.new(self, width: width).to_s

      private

      def terminal_width
        require "io/console"
        IO.console&.winsize&.last.to_i.nonzero? || 120
      rescue SystemCallError
        120
      end
    end
  end
end

require_relative "ledger/row"
require_relative "ledger/verdict"
require_relative "ledger/columns"
require_relative "ledger/markdown_tables"
require_relative "ledger/environment"
require_relative "ledger/page"
require_relative "ledger/report_files"
