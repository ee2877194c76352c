# frozen_string_literal: true

require "zlib"

# Labelled code: the finding that a detector of repeated queries must report for each sample, and the line.
# Labels are comments on the line that they are about.
#
#   module Accuracy::RecordSamples
#     extend Samples
#
#     sample "one of each" do
#       User.all.to_a.each do |user|
#         user.employee                 #=> n_plus_one 5 User#employee
#       end
#     end
#
#     sample "one of each, preloaded" do     # no label: expects no finding
#       User.preload(:employee).each(&:employee)
#     end
#   end
#
# A label is `#=> kind count association`. A comma separates several labels on a line, the association is
# optional (or nil), and `elsewhere` at the end means that a line outside of the sample sends the query. The
# tests and benchmark/detect_accuracy.rb use this file, so it requires only the ORM.
module Accuracy
  # An expected or reported finding at one line of a file.
  Expectation = Struct.new(:kind, :line, :count, :association, keyword_init: true) do
    def to_s = [kind, count, association, ("line #{line}" if line)].compact.join(" ")
  end

  # One block of code with its labels.
  Sample = Struct.new(:group, :kind, :title, :writes, :path, :lines, :block, :wrong, keyword_init: true) do
    # @return [String] the name of its test
    def name = "#{group}: #{kind}: #{title}"

    # Holds 30 % of the samples out, by a hash of the name, so that no rule of the detector is fitted to them.
    # @return [Boolean]
    def held_out? = Zlib.crc32(name) % 10 < 3

    # @return [Array<Expectation>]
    def expected = @expected ||= lines.flat_map { |number| labels(number) }

    # @return [Object] the value of the block; a sample that writes runs in a transaction that is rolled back
    def run(world)
      writes ? world.rolled_back { world.instance_exec(&block) } : world.instance_exec(&block)
    end

    private

    def labels(number)
      label = Samples.source(path)[number - 1][/#=> (.*)/, 1] or return []

      label.split(", ").map do |one|
        kind, count, association, elsewhere = one.split
        Expectation.new(kind: kind.to_sym, line: elsewhere ? nil : number, count: Integer(count),
                        association: (association unless association == "nil"))
      end
    end
  end

  # Extend a module of samples with this; the blocks see the constants of the module that they are written in.
  module Samples
    @sources = {}

    # @return [Array<String>] the lines of a file
    def self.source(path) = @sources[path] ||= File.readlines(path, chomp: true)

    def self.extended(samples)
      (@modules ||= []) << samples
    end

    # @param what [String] "record", "dataset", "sqlite3" …: the suffix of the file names
    # @return [Array<Samples>] the modules of these files
    def self.load(what)
      paths = Dir[File.join(__dir__, "cases", "*#{what}_samples.rb")].each { |path| require path }
      @modules.select { |samples| paths.include?(samples.samples.first.path) }
    end

    # Sets the kind of the following samples.
    def kind(text)
      @kind = text
    end

    # @param writes [Boolean] whether the block changes data
    # @param wrong [String, nil] the reason for Castellan's wrong verdict, which the tests expect
    def sample(title, writes: false, wrong: nil, &block)
      path, first = block.source_location
      samples << Sample.new(group: group, kind: @kind, title: title, writes: writes, path: path, lines: lines(path, first), block: block,
                            wrong: wrong)
    end

    # @return [Array<Sample>]
    def samples = @samples ||= []

    # @return [String] "ActiveRecord", "Sequel" …
    def group = self::GROUP

    private

    # Returns the line numbers from the sample's first line to its `end`.
    def lines(path, first)
      source = Samples.source(path)
      indent = source[first - 1][/\A */]
      return first..first if source[first - 1].end_with?("}")

      last = (first...source.size).find { |index| source[index] == "#{indent}end" } or raise "#{path}:#{first} has no end"
      first..last + 1
    end
  end
end
