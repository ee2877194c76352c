# frozen_string_literal: true

require "test_helper"
require "castellan/detect"
require "castellan/doctor"

module Castellan
  # Writes a fix into a copy of a method's source, runs the copy in a child process and counts its queries.
  #
  #   module Units          # the module in which the source is evaluated
  #     World = ActiveRecordZoo
  #   end
  #   include Castellan::AppliedFix
  #
  #   unit = unit("World::Keeper.all.map do |keeper|", "  keeper.badge&.id", "end")
  #   assert_mends(unit, queries: 2)   # applies the fix of its only finding to a copy and runs that
  #
  # The child process keeps declarations in models out of this one. A fix is read as a person reads it: the
  # call to add at a line, the association to declare in a class, or the call that replaces another.
  module AppliedFix
    # The result of a run in a child process.
    Run = Struct.new(:result, :queries, :findings, :error)

    # A method in its own file; the first given line is the file's second.
    Unit = Struct.new(:units, :path, :lines) do
      @number = 0

      def self.at(units, dir, lines) = new(units, File.join(dir, "unit_#{@number += 1}.rb"), lines)

      def name = File.basename(path, ".rb")

      def define
        File.write(path, "module #{units}; def self.#{name}; _ = 1\n#{lines.join("\n")}\nend; end\n")
        load path
      end

      def call = units.public_send(name)

      # @param place [String] "path:line"
      def edit(place)
        index = Integer(place[/:(\d+)\z/, 1]) - 2
        lines[index] = yield(lines.fetch(index))
      end
    end

    # Writes the text of a fix into a unit.
    #
    #   Written.new(finding.fix, unit, /World::\w+/, "room_keys.last").call
    class Written
      PLACE = "where the [\\w ]+ are loaded:"
      ADD = /add (\.(?:preload|eager)\S.*?)( and \.all)? #{PLACE} (\S+:\d+(?: and \S+:\d+)*)/
      READ = /read (\.\w+(?:\.\w+\??(?:\(.*?\))?)?(?:&\.\w+)?) at (\S+:\d+)/
      WRITE = /write (\.\S+|\.\w+ \{.*?\}) instead of (\.\S+) (?:at|#{PLACE}) (\S+:\d+)/
      private_constant :PLACE, :ADD, :READ, :WRITE

      # @param at [Regexp, String] the call to which the fix is appended
      # @param reads [String, nil] the call that a declared association replaces
      def initialize(fix, unit, at, reads)
        @fix = fix
        @unit = unit
        @at = at
        @reads = reads
      end

      def call
        declare
        @fix.scan(ADD) { |call, all, places| places.split(" and ").each { |place| add(call, all, place) } }
        @fix.scan(READ) { |good, place| replace(place, ".#{@reads}", good) if @reads }
        @fix.scan(WRITE) { |good, bad, place| replace(place, bad, good) }
      end

      private

      # Existing subclasses do not inherit later declarations in ActiveRecord.
      def declare
        model, code = @fix.match(/declare in (\S+): (.*?); add /)&.captures
        return unless model

        owner = Object.const_get(model)
        owner.class_eval(code)
        owner.subclasses.each { |heir| heir._reflections = owner._reflections.merge(heir._reflections) } if owner.respond_to?(:_reflections)
      end

      def add(call, all, place)
        replace(place, @at) { |anchor| "#{anchor}#{call}" }
        @unit.edit(place) { |line| line.sub(/\.(each|map)\b/, '.all.\1') } if all
      end

      def replace(place, bad, good = nil, &block)
        @unit.edit(place) do |line|
          raise "#{place} has no #{bad}: #{line}" unless line.match?(bad.is_a?(String) ? Regexp.escape(bad) : bad)

          good ? line.sub(bad, good) : line.sub(bad, &block)
        end
      end
    end

    def setup
      super
      @dir = Dir.mktmpdir("castellan-fix-")
    end

    def teardown
      FileUtils.rm_rf(@dir)
      super
    end

    def unit(*lines) = Unit.at(self.class::Units, @dir, lines).tap(&:define)

    def findings_of(unit) = Castellan::Detect.watch(slow_ms: nil) { unit.call }

    def only_finding(unit)
      findings = findings_of(unit)
      assert_equal 1, findings.size, findings.join("\n")
      findings.first
    end

    # Asserts that the applied fix saves queries, leaves no finding and keeps the result, as its trial
    # predicted.
    # @param queries [Integer] the expected number of queries with the fix
    # @param tried [Boolean] whether a trial can apply the fix without a change of the source
    # @return [String] the fix
    def assert_mends(unit, queries:, at: /World::\w+/, reads: nil, tried: true, findings: [only_finding(unit)])
      before = measured(unit)
      applied = run_copy(unit) { |copy| findings.map(&:fix).uniq.each { |fix| Written.new(fix, copy, at, reads).call } }
      fixes = findings.map(&:fix).join("\n")
      assert_nil applied.error, fixes
      assert_equal before.result, applied.result, fixes
      assert_equal [queries, []], [applied.queries, applied.findings], fixes
      tried ? assert_tried(unit, findings, before, applied) : assert_untried(unit, findings)
      fixes
    end

    # Asserts that the trial counted the queries of the applied fix.
    def assert_tried(unit, findings, before, applied)
      trial = Castellan::Doctor.try(*findings) { unit.call }
      assert_predicate trial, :accepted?, "#{findings.join("\n")}\n#{trial}"
      assert_predicate trial, :same?
      assert_equal [before.queries, applied.queries], [trial.before.queries, trial.after.queries], findings.join("\n")
    end

    def assert_untried(unit, findings)
      assert_includes Castellan::Doctor.try(*findings) { unit.call }.to_s, "not tried: the line that queries must be rewritten"
    end

    # Asserts that there is no fix and that a preload does not help.
    # @return [String] the reason
    def assert_refused(unit, preload)
      finding = only_finding(unit)
      assert_nil finding.fix
      before = measured(unit)
      preloaded = run_copy(unit) { |copy| copy.lines[0] = copy.lines[0].sub(/World::\w+/) { |model| "#{model}#{preload}" } }
      assert_nil preloaded.error
      assert_operator preloaded.queries, :>, before.queries
      finding.fix_refused
    end

    # Edits the lines and runs them in a child process.
    # @yieldparam copy [Unit]
    # @return [Run]
    def run_copy(unit)
      in_child do
        before_copy
        copy = Unit.at(unit.units, @dir, unit.lines.dup)
        yield copy if block_given?
        copy.define
        copy.call
        measured(copy)
      rescue ScriptError, StandardError => error
        Run.new(nil, nil, nil, "#{error.class}: #{error.message}")
      end
    end

    # Evaluates the code of a fix.
    # @param names [Hash{Symbol => Object}] the local variables of the code
    # @return [Array(Object, Integer)] its value and the number of queries
    def evaluate(code, **names)
      counter = Castellan::Instrument::Counter.new
      known = names.map { |name, value| "#{name} = #{value.inspect}; [#{name}]; " }.join
      [Castellan::Instrument.record(counter) { self.class::Units.module_eval(known + code, __FILE__, __LINE__) }, counter.queries]
    end

    # @return [Run] of the unchanged unit, in this process
    def measured(unit)
      counter = Castellan::Instrument::Counter.new
      result = nil
      findings = Castellan::Detect.watch(slow_ms: nil) { result = Castellan::Instrument.record(counter) { unit.call } }
      Run.new(Castellan::Doctor::Outcome.plain(result), counter.queries, findings.map(&:to_s), nil)
    end

    private

    # A hook for the child process, before it uses a connection of its parent.
    def before_copy; end

    def in_child
      reader, writer = IO.pipe(binmode: true)
      child = fork do
        reader.close
        writer.write(Marshal.dump(yield))
        writer.close
        exit!(0)
      end
      writer.close
      Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- our own child wrote it
    ensure
      reader&.close
      Process.wait(child) if child
    end
  end
end
