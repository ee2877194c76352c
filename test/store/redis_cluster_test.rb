# frozen_string_literal: true

require "test_helper"
require "redis-client"
require_relative "store_contract"

# A cluster of two Redis servers, each with half of the slots, through redis-cluster-client.
class RedisClusterTest < Minitest::Test
  include StoreContract

  SLOTS = [0..8_191, 8_192..16_383].freeze

  class << self
    def servers = @servers ||= Array.new(2) { Castellan::TestServers.start_redis("--cluster-enabled", "yes") }.tap { |pair| join(pair) }

    def client
      require "redis-cluster-client"
      RedisClient.cluster(nodes: servers.map { |server| "redis://127.0.0.1:#{server.port}" }, timeout: 5).new_pool(size: 5)
    end

    private

    def join(pair)
      nodes = pair.map { |server| RedisClient.new(port: server.port, timeout: 5) }
      nodes.zip(SLOTS) { |node, slots| node.call("CLUSTER", "ADDSLOTSRANGE", slots.first, slots.last) }
      nodes.first.call("CLUSTER", "MEET", "127.0.0.1", pair.last.port)
      deadline = Castellan::TestServers.now + 30
      until nodes.all? { |node| node.call("CLUSTER", "INFO").include?("cluster_state:ok") && node.call("CLUSTER", "SLOTS").size == 2 }
        raise "the cluster was not formed within 30 s" if Castellan::TestServers.now > deadline

        sleep 0.05
      end
    end
  end

  def setup
    needs :redis
    super
  end

  def test_keys_are_on_both_servers
    names = Array.new(50) { |number| key("k#{number}") }
    store.write_multi(names.to_h { |name| [name, "of #{name}"] })
    assert_equal names.to_h { |name| [name, "of #{name}".b] }, store.read_multi(names)
    sizes = self.class.servers.map { |server| RedisClient.new(port: server.port).call("DBSIZE") }
    assert(sizes.all? { |size| size > 5 }, sizes.inspect)
  end

  private

  def store = @store ||= Castellan::Store::RedisStore.new(self.class.client, timeout: 5)
end
