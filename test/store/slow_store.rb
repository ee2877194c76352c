# frozen_string_literal: true

require_relative "../cache/broken_store"

# A store that can be switched off; each failure advances its clock.
class SlowStore < BrokenStore
  SECOND = 1_000_000_000

  attr_accessor :now, :takes

  # @param takes [Integer] nanoseconds per failure
  def initialize(takes: SECOND)
    super()
    @now = 0
    @takes = takes
  end

  # Replaces Castellan's clock by that of the store during the block.
  def clocked(&block) = Castellan::Clock.stub(:monotonic_ns, -> { now }, &block)

  private

  def fail_if_broken
    self.now += takes if broken
    super
  end
end
