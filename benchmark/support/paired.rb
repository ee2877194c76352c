# frozen_string_literal: true

require "castellan/figures"

module Benchmarks
  # Times several ways in turns, so that the load of the machine affects all of them.
  #
  #   paired = Paired.new(ways, rounds: 15)
  #   paired.ms("Castellan")                       # => 5.21, the median of its rounds
  #   paired.times("Castellan", "Panko").to_s      # => "44.7 (41.2..47.9)": how many times as fast, by medians and by round
  #   paired.objects("Castellan")                  # => 812 allocated by one call
  #
  # A round runs each way once (a fast way several times, for the mean), so ways can be compared round by
  # round. Collects garbage before each way, outside of the measured time.
  class Paired
    # How many times as fast one way is as another: by the medians, and the extremes of a round.
    Ratio = Struct.new(:median, :least, :greatest) do
      # @param goal [Numeric] at least so many times; with `at_most`, at most
      # @return [String] "reached" or "not reached" only if all rounds agree
      def verdict(goal, at_most: false)
        agree = [least, greatest].map { |value| at_most ? value <= goal : value >= goal }
        return "not shown" if agree.uniq.size > 1

        agree.first ? "reached" : "**not reached**"
      end

      def to_s
        format("%s (%s..%s)", *to_a.map { |value| value < 10 ? value.round(2) : value.round(1) })
      end
    end

    ENOUGH = 0.03
    MOST = 100 # calls

    # @param enough [Float] seconds of work of a way per round
    # @param collect [Boolean] whether to collect garbage before each way
    def initialize(ways, rounds:, enough: ENOUGH, collect: true)
      @enough = enough
      @collect = collect
      @seconds = ways.to_h { |way| [way.name, []] }
      @objects = ways.to_h { |way| [way.name, allocated(way)] }
      calls = ways.to_h { |way| [way.name, calls_of(way)] }
      rounds.times { |round| turns(ways, round).each { |way| @seconds[way.name] << mean(way, calls[way.name]) } }
    end

    # @return [Float]
    def ms(name)
      (Castellan::Figures.median(@seconds.fetch(name)) * 1000).round(4)
    end

    # @return [Integer]
    def objects(name)
      @objects.fetch(name)
    end

    # @return [Array<String>]
    def names
      @seconds.keys
    end

    # @return [Boolean]
    def way?(name)
      @seconds.key?(name)
    end

    # @return [Ratio] how many times as fast +name+ is as +other+
    def times(name, other)
      rounds = @seconds.fetch(other).zip(@seconds.fetch(name)).map { |theirs, ours| theirs / ours }
      Ratio.new(Castellan::Figures.median(@seconds.fetch(other)) / Castellan::Figures.median(@seconds.fetch(name)), *rounds.minmax)
    end

    private

    # Every second round is in reverse order, so that a way does not always follow the same other one.
    def turns(ways, round)
      round.odd? ? ways.reverse : ways
    end

    # Counts the second of two calls, because the first fills caches, including prepared statements.
    def allocated(way)
      way.call
      given = way.prepare
      GC.disable
      before = GC.stat(:total_allocated_objects)
      way.call(given)
      GC.stat(:total_allocated_objects) - before
    ensure
      GC.enable
    end

    def calls_of(way)
      return 1 if way.prepared?

      @enough.zero? ? 1 : (@enough / mean(way, 1)).ceil.clamp(1, MOST)
    end

    def mean(way, calls)
      given = way.prepare
      GC.start if @collect
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      calls.times { way.call(given) }
      (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) / calls
    end
  end
end
