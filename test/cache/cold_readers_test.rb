# frozen_string_literal: true

require "test_helper"
require "redis-client"

# 64 readers in four processes ask for what nobody has: one of them computes.
class CacheColdReadersTest < Minitest::Test
  PROCESSES = 4
  THREADS = 16

  def setup
    needs :redis
    @url = Castellan::TestServers.redis_url
    @prefix = "cold-#{rand(1 << 60).to_s(36)}"
  end

  def test_one_computation_for_all
    assert_equal [["the bytes"] * 64, 1], read { |layer| layer.fetch(key) { compute { "the bytes" } } }
  end

  # A failure is not shared: each of them computes, and none is given what another one raised.
  def test_only_the_computing_thread_raises_a_failure
    bytes, computed = read do |layer|
      layer.fetch(key) { compute { |number| number == 1 ? raise(IOError, "mine") : "the bytes" } }
    rescue IOError => error
      error.message
    end
    assert_equal [["mine", 1], ["the bytes", 63]], bytes.tally.sort
    assert_operator computed, :>, 1
  end

  private

  def key = "#{@prefix}-key"
  def redis = RedisClient.new(url: @url, timeout: 20)

  # The computation lasts until all have asked.
  def compute
    client = redis
    number = client.call("INCR", "#{@prefix}-computed")
    deadline = Castellan::TestServers.now + 60
    sleep 0.01 until client.call("GET", "#{@prefix}-asked").to_i == PROCESSES * THREADS || Castellan::TestServers.now > deadline
    yield number
  ensure
    client&.close
  end

  # @return [Array(Array<String>, Integer)] what the readers read, and how often it was computed
  def read(&block)
    pipes = Array.new(PROCESSES) { IO.pipe(binmode: true) }
    pids = pipes.map { |_, writer| fork { in_process(writer, &block) } }
    pipes.map(&:last).each(&:close)
    bytes = pipes.flat_map { |reader, _| Marshal.load(reader.read) } # rubocop:disable Security/MarshalLoad -- of a child process
    pids.each { |pid| Process.wait(pid) }
    [bytes, redis.call("GET", "#{@prefix}-computed").to_i]
  end

  def in_process(writer)
    layer = Castellan::Cache::DocumentLayer.new(store: Castellan::Store::RedisStore.new(url: @url, size: THREADS, timeout: 10),
                                                lease_ttl: 60)
    threads = Array.new(THREADS) do
      Thread.new do
        redis.call("INCR", "#{@prefix}-asked")
        yield layer
      end
    end
    writer.write(Marshal.dump(threads.map(&:value)))
    writer.close
  ensure
    exit!(0)
  end
end
