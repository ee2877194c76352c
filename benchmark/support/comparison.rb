# frozen_string_literal: true

require_relative "paired"
require_relative "same_documents"
require_relative "way"

module Benchmarks
  # Times the ways of several works and writes them as Markdown, with their goals.
  #
  #   comparison = Comparison.new("Castellan", rounds: 9)
  #   comparison.add("Ten attributes, SQLite", ways, goals: { "Panko, nested" => 1.0 })   # Castellan ≥ 1.0 × Panko
  #   puts comparison.to_s
  #
  # Compares the documents before the measurement; the first difference ends the run.
  class Comparison
    Work = Struct.new(:title, :paired, :bytes, :goals, :more)

    # @param ours [String] the way to compare the others with
    # @param turns [Hash] the options rounds, enough and collect of {Paired}
    def initialize(ours, **turns)
      @ours = ours
      @turns = turns
      @works = []
    end

    # @return [Array<Work>]
    attr_reader :works

    # @param goals [Hash{String => Float}] by the name of another way, how many times as fast ours should be
    # @param more [Hash{String => Hash{String => Object}}] more columns: by name, the values by way
    # @return [Work] measured
    def measure(title, ways, goals: {}, more: {})
      warn title
      bytes = SameDocuments.check(title, ways)
      Work.new(title, Paired.new(ways, **@turns), bytes, goals, more)
    end

    # @return [Array<String>] lines of Markdown
    def goals
      rows = works.flat_map { |work| work.goals.map { |other, least| goal(work, other, least) } }
      ["| goal | measured | | the floor |", "|---|---|---|---|", *rows]
    end

    # @return [Array<String>] lines of Markdown
    def tables
      works.flat_map { |work| ["", "## #{work.title}", "", *table(work)] }
    end

    # @return [Array<Hash>] for BENCH_JSON
    def rows
      works.flat_map do |work|
        work.paired.names.map do |way|
          { work: work.title, way: way, ms: work.paired.ms(way), objects: work.paired.objects(way), bytes: work.bytes[way],
            times_castellan: work.paired.times(@ours, way).median.round(3) }
        end
      end
    end

    private

    def goal(work, other, least)
      ratio = work.paired.times(@ours, other)
      floor = work.paired.names.find { |name| name.end_with?("(the floor)") }
      floor &&= "#{work.paired.times(floor, other)} ×"
      "| #{work.title}: ≥ #{least} × #{other} | #{ratio} × | #{ratio.verdict(least)} | #{floor} |"
    end

    def table(work)
      paired = work.paired
      rows = paired.names.sort_by { |way| paired.ms(way) }.map do |way|
        times = way == @ours ? "1" : paired.times(@ours, way).to_s
        [way, paired.ms(way), times, paired.objects(way), *work.more.values.map { |values| values[way] }, work.bytes[way]]
      end
      titles = ["way", "ms", "times #{@ours} (min..max)", "objects", *work.more.keys, "bytes"]
      [titles, titles.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |" }
    end
  end
end
