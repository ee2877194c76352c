# frozen_string_literal: true

require "zlib"

# Labelled pieces of code: what a detector of repeated queries must say about each, and where. The labels are comments in
# the code itself, so that a label cannot be about another line than it stands on.
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
#     sample "one of each, preloaded" do     # no label: nothing may be found
#       User.preload(:employee).each(&:employee)
#     end
#   end
#
# A label is `#=> kind count association`; several on a line are separated by a comma, the association may be left out (or nil), and
# `elsewhere` at the end means that the query is sent by a line outside of the sample. Used by the tests and by
# benchmark/detect_accuracy.rb, so it needs nothing but the ORM.
module Accuracy
  # What is expected, or what was found, at one line of a file.
  Expectation = Struct.new(:kind, :line, :count, :association, keyword_init: true) do
    def to_s = [kind, count, association, ("line #{line}" if line)].compact.join(" ")
  end

  # One piece of code with what must be found in it.
  Sample = Struct.new(:group, :kind, :title, :writes, :path, :lines, :block, :wrong, keyword_init: true) do
    # @return [String] what a test of it can be called
    def name = "#{group}: #{kind}: #{title}"

    # Three in ten, chosen by name: nobody fits a rule of the detector to them.
    # @return [Boolean]
    def held_out? = Zlib.crc32(name) % 10 < 3

    # @return [Array<Expectation>]
    def expected = @expected ||= lines.flat_map { |number| labels(number) }

    # @return [Object] runs it in a transaction that is rolled back where it writes
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

  # Extends a module of samples; its constants are seen by the blocks, because they are written inside it.
  module Samples
    @sources = {}

    # @return [Array<String>] the lines of a file
    def self.source(path) = @sources[path] ||= File.readlines(path, chomp: true)

    def self.extended(samples)
      (@modules ||= []) << samples
    end

    # @param what [String] "record", "dataset", "sqlite3" …: the end of the names of their files
    # @return [Array<Samples>] all modules of such samples
    def self.load(what)
      paths = Dir[File.join(__dir__, "cases", "*#{what}_samples.rb")].each { |path| require path }
      @modules.select { |samples| paths.include?(samples.samples.first.path) }
    end

    # What all that is defined until the next `kind` has in common.
    def kind(text)
      @kind = text
    end

    # @param writes [Boolean] whether it changes data
    # @param wrong [String, nil] why Castellan judges it wrongly; the tests hold that it does
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

    # From its first line to the `end` that stands where it does.
    def lines(path, first)
      source = Samples.source(path)
      indent = source[first - 1][/\A */]
      return first..first if source[first - 1].end_with?("}")

      last = (first...source.size).find { |index| source[index] == "#{indent}end" } or raise "#{path}:#{first} has no end"
      first..last + 1
    end
  end
end
