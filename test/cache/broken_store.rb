# frozen_string_literal: true

# A memory store that can be switched off and on, and counts its calls.
class BrokenStore < Castellan::Store::MemoryStore
  attr_accessor :broken, :before_lease
  attr_reader :reads, :writes

  def initialize
    super
    @reads = @writes = 0
  end

  def read_multi(keys)
    fail_if_broken
    @reads += 1
    super
  end

  def write_multi(entries, ttl: nil, if_absent: false)
    fail_if_broken
    @writes += 1
    super
  end

  private

  def fail_if_broken
    raise Castellan::StoreError, "connection refused" if broken
  end
end
