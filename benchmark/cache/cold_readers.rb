# frozen_string_literal: true

require "redis-client"

# Counts how often a page is computed when 64 readers in four processes ask for it at the same moment and nobody has it.
#
#   ColdReaders.new(redis_url).count { |readers| -> { Rails.cache.fetch("page") { readers.compute } } }   # => 64
#
# The block runs in each process and returns what each of its threads calls.
class ColdReaders
  PROCESSES = 4
  THREADS = 16

  def initialize(redis_url)
    @redis_url = redis_url
    @prefix = "cold-#{rand(1 << 60)}"
  end

  # @return [Integer] computations
  def count
    pids = Array.new(PROCESSES) { fork { process(yield(self)) } }
    pids.each { |pid| Process.wait(pid) }
    redis.call("GET", "#{@prefix}-computed").to_i
  end

  # The computation lasts until all have asked.
  # @return [String]
  def compute
    client = redis
    client.call("INCR", "#{@prefix}-computed")
    sleep 0.01 until client.call("GET", "#{@prefix}-asked").to_i == PROCESSES * THREADS
    "the page"
  end

  private

  def redis = RedisClient.new(url: @redis_url, timeout: 20)

  def process(read)
    threads = Array.new(THREADS) do
      Thread.new do
        redis.call("INCR", "#{@prefix}-asked")
        read.call
      end
    end
    threads.each(&:join)
  ensure
    exit!(0)
  end
end
