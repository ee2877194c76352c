# frozen_string_literal: true

# A store in memory that can be broken and mended, and counts what it is asked.
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
