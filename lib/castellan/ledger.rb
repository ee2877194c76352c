# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "clock"

module Castellan
  # Steps with what each of them cost, and a verdict on each: the proof at the end of the work.
  #
  #   ledger = Castellan::Ledger.new
  #   ledger.add(story: "users", step: "baseline", duration_ms: 812.0, queries: 1_139, story_value: 7_795)
  #   ledger.add(story: "users", step: "includes", duration_ms: 640.0, queries: 1_130)         # verdict "better"
  #   ledger.add(story: "users", step: "as told", duration_ms: 90.0, wrong: "users/3: roles")  # verdict "wrong", never compared
  #   ledger.to_text       # a table for a terminal
  #   ledger.to_json       # an array of rows, see Row::FIELDS
  #   Castellan::Ledger::ReportFiles.new(ledger).write("castellan-report")
  #
  # A step is compared with the step before it in its story that was not wrong, on its leading figure: requests_per_s where
  # it has one, else duration_ms. Within the tolerance it is the "same". The first step of a story has no verdict. Rows are
  # frozen; a ledger is filled by one thread.
  class Ledger
    TOLERANCE = 0.05

    # @return [Float] the part by which a figure may differ and still be the same
    attr_reader :tolerance
    # @return [Array<Row>] in the order they were added
    attr_reader :rows

    def initialize(tolerance: TOLERANCE)
      raise ConfigurationError, "tolerance: must be from 0 up to 1, got #{tolerance.inspect}" unless (0...1).cover?(tolerance)

      @tolerance = tolerance
      @rows = []
    end

    # @param measurement [Measurement, nil] what one unit of work cost
    # @param load [#to_h, nil] what a load test measured, see LoadTest::Summary#to_h
    # @param wrong [String, nil] why the answer is not the right one: the first differing id and member
    # @param reference [Boolean] true for what is no step of the story but what its steps are held against: it has no verdict
    # @param fields [Hash] any of Row::FIELDS but verdict, and code: ("path:line"), command:
    # @return [Row]
    # @raise [ConfigurationError] for a field that is none, or a step that is there already
    def add(measurement: nil, load: nil, wrong: nil, reference: false, **fields)
      row = Row.build(Row.measured(measurement).merge(load.to_h, fields).merge(reason: wrong, reference: reference))
      raise ConfigurationError, "#{row.story} has a step #{row.step.inspect} already" if find(row.story, row.step)

      @rows << row.with_verdict(Verdict.of(row, before: before(row.story), tolerance: tolerance))
      @rows.last
    end

    # @return [Hash{String => Array<Row>}] rows by story, in order
    def stories = rows.group_by(&:story)

    # @return [Row, nil]
    def find(story, step)
      rows.find { |row| row.story == story && row.step == step }
    end

    # How many times as good one step is as another.
    #
    #   ledger.ratio("users", "Castellan resource", "eager loaded")                          # => 41.2, times as fast
    #   ledger.ratio("users", "Castellan resource", "eager loaded", on: :allocated_objects)  # => 512.0, times fewer
    #
    # @return [Float, nil] above 1 is better; nil when a step or its figure is missing
    def ratio(story, step, against, on: nil)
      ours = find(story, step)
      theirs = find(story, against)
      ours && theirs && Verdict.factor(ours, theirs, on: on)
    end

    # @return [String] an array of rows; a field that a step does not have is null
    def to_json(*_state)
      require "json"
      "[\n#{rows.map { |row| "  #{JSON.generate(row.to_h)}" }.join(",\n")}\n]\n"
    end

    # @return [String] a table for each story
    def to_markdown = MarkdownTables.new(self).to_s

    # @param width [Integer] characters of a line; columns that do not fit are left out, the least important first
    # @return [String] the same for a terminal
    def to_text(width: terminal_width) = MarkdownTables.new(self, width: width).to_s

    private

    def terminal_width
      require "io/console"
      IO.console&.winsize&.last.to_i.nonzero? || 120
    rescue SystemCallError
      120
    end

    def before(story)
      rows.reverse_each.find { |row| row.story == story && row.step? && !row.wrong? }
    end
  end
end

require_relative "ledger/row"
require_relative "ledger/verdict"
require_relative "ledger/figures"
require_relative "ledger/columns"
require_relative "ledger/markdown_tables"

module Castellan
  class Ledger
    autoload :Environment, "castellan/ledger/environment"
    autoload :Page, "castellan/ledger/page"
    autoload :ReportFiles, "castellan/ledger/report_files"
  end
end
