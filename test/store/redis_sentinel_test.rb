# frozen_string_literal: true

require "test_helper"
require "redis-client"

# A store behind Redis Sentinel follows the primary.
class RedisSentinelTest < Minitest::Test
  def setup
    needs :redis
  end

  def test_after_a_failover_the_store_writes_to_the_new_primary
    primary, replica = Array.new(2) { Castellan::TestServers.start_redis }
    direct(replica).call("REPLICAOF", "127.0.0.1", primary.port)
    sentinel = start_sentinel(primary)
    eventually { attempt { direct(sentinel).call("SENTINEL", "REPLICAS", "cache").any? && direct(replica).call("ROLE")[3] == "connected" } }
    config = RedisClient.sentinel(name: "cache", sentinels: [{ host: "127.0.0.1", port: sentinel.port }], timeout: 1, reconnect_attempts: 2)
    store = Castellan::Store::RedisStore.new(config.new_pool(size: 2), timeout: 2)
    assert_equal ["a"], store.write_multi({ "a" => "1" })
    direct(sentinel).call("SENTINEL", "FAILOVER", "cache")
    eventually { attempt { direct(replica).call("ROLE").first == "master" } }
    primary.stop
    eventually { attempt { store.write_multi({ "b" => "2" }) == ["b"] } }
    assert_equal "2", direct(replica).call("GET", "b")
    assert_equal({ "b" => "2" }, store.read_multi(["b"]))
  end

  private

  def direct(server) = RedisClient.new(port: server.port, timeout: 5)

  def start_sentinel(primary)
    Castellan::TestServers.start(:sentinel) do |port, dir|
      conf = File.join(dir, "sentinel.conf")
      File.write(conf, "port #{port}\nbind 127.0.0.1\ndir #{dir}\nsentinel monitor cache 127.0.0.1 #{primary.port} 1\n" \
                       "sentinel down-after-milliseconds cache 1000\n")
      [Castellan::TestServers.binary(:redis), conf, "--sentinel"]
    end
  end

  # Connections break while the servers change roles.
  def attempt
    yield
  rescue Castellan::StoreError, RedisClient::ConnectionError
    false
  end
end
