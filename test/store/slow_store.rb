# frozen_string_literal: true

require_relative "../cache/broken_store"

# A store that can be broken, whose failures take as long as its clock says.
class SlowStore < BrokenStore
  SECOND = 1_000_000_000

  attr_accessor :now, :takes

  # @param takes [Integer] nanoseconds of a failure
  def initialize(takes: SECOND)
    super()
    @now = 0
    @takes = takes
  end

  # Castellan's clock is the store's while the block runs.
  def clocked(&block) = Castellan::Clock.stub(:monotonic_ns, -> { now }, &block)

  private

  def fail_if_broken
    self.now += takes if broken
    super
  end
end
