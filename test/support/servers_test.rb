# frozen_string_literal: true

require "test_helper"
require "net/http"

class TestServersTest < Minitest::Test
  Servers = Castellan::TestServers

  def test_postgres_url_creates_a_new_database_each_time
    needs :postgres
    require "pg"
    urls = Array.new(2) { Servers.postgres_url }
    refute_equal(*urls)
    urls.each do |url|
      connection = PG.connect(url)
      connection.exec("CREATE TABLE users (id bigint)")
      assert_equal "0", connection.exec("SELECT count(*) FROM users").getvalue(0, 0)
    ensure
      connection&.close
    end
  end

  def test_redis_responds
    needs :redis
    require "redis-client"
    assert_equal "PONG", RedisClient.config(url: Servers.redis_url).new_client.call("PING")
  end

  def test_a_separate_redis_can_be_stopped
    needs :redis
    server = Servers.start_redis
    assert server.alive?
    server.stop
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", server.port) }
  end

  def test_memcached_responds
    needs :memcached
    require "dalli"
    client = Dalli::Client.new(Servers.memcached_url, protocol: :meta, raw: true)
    client.set("key", "value")
    assert_equal "value", client.get("key")
  ensure
    client&.close
  end

  # Two processes found the same port at the same time, and one of them used the server of the other.
  def test_a_port_belongs_to_one_process_before_its_server_listens
    port = Servers.free_port
    program = "require 'support/servers'; print Castellan::TestServers.send(:reserve, #{port})"
    command = [RbConfig.ruby, "-Ilib", "-Itest", "-rtest_helper", "-e", program]
    assert_match(/\A#{File.exist?("/proc/net/unix") ? "false" : "true"}/, IO.popen(command, &:read))
  end

  def test_the_proxies_serve_responses_of_puma
    needs :varnish, :nginx
    Servers.puma(->(_env) { [200, { "content-type" => "text/plain" }, ["a small castle"]] }) do |base_url|
      port = URI(base_url).port
      Servers.varnish(port) { |url| assert_equal "a small castle", get(url).body }
      Servers.nginx(port) { |url| assert_equal "a small castle", get(url).body }
    end
  end

  def test_nginx_caches_if_configured
    needs :nginx
    hits = 0
    app = ->(_env) { [200, { "cache-control" => "max-age=60" }, [(hits += 1).to_s]] }
    Servers.puma(app) do |base_url|
      conf = "location / { proxy_pass http://backend; proxy_cache c; }"
      Servers.nginx(URI(base_url).port, conf, http: "proxy_cache_path cache keys_zone=c:1m;") do |url|
        assert_equal %w[1 1], Array.new(2) { get(url).body }
      end
    end
  end

  def test_puma_runs_a_rackup_file_in_a_process_of_its_own
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "config.ru"), 'run ->(_env) { [200, {}, [ENV["CASTLE"], Process.pid.to_s].join(" ").lines] }')
      pid = Servers.puma(File.join(dir, "config.ru"), env: { "CASTLE" => "tower" }) do |base_url, server|
        assert_equal "tower #{server.pid}", get(base_url).body
        server.pid
      end
      assert_raises(Errno::ESRCH) { Process.kill(0, pid) }
    end
  end

  def test_puma_runs_a_directory_through_its_own_gemfile
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "Gemfile"), "source Gem.sources.first.uri.to_s\ngem \"puma\"\n")
      File.write(File.join(dir, "config.ru"), 'run ->(_env) { [200, {}, [ENV["BUNDLE_GEMFILE"]]] }')
      Servers.puma(dir) { |base_url| assert_equal File.join(dir, "Gemfile"), get(base_url).body }
    end
  end

  def test_an_application_that_does_not_boot_is_shown
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "config.ru"), 'raise "no moat"')
      error = assert_raises(Servers::Failed) { Servers.puma(File.join(dir, "config.ru")) }
      assert_includes error.message, "no moat"
    end
  end

  def test_servers_end_with_a_killed_process
    needs :redis
    reader, writer = IO.pipe
    program = 'server = Castellan::TestServers.start_redis; puts server.pid, server.dir; $stdout.flush; sleep'
    pid = Process.spawn(RbConfig.ruby, "-r#{ROOT}/test/support/servers.rb", "-e", program, out: writer)
    writer.close
    server_pid = reader.gets.to_i
    dir = reader.gets.chomp
    Process.kill(:KILL, pid)
    Process.wait(pid)
    assert gone?(server_pid), "Redis #{server_pid} still runs"
    assert_eventually("its files are still there") { !File.exist?(File.dirname(dir)) }
  end

  def test_chromium_shows_a_page
    needs :chromium
    require "ferrum"
    Servers.puma(->(_env) { [200, { "content-type" => "text/html" }, ["<title>Keep</title>"]] }) do |base_url|
      browser = Ferrum::Browser.new(**Servers.chromium)
      browser.go_to(base_url)
      assert_equal "Keep", browser.title
    ensure
      browser&.quit
    end
  end

  private

  def get(url) = Net::HTTP.get_response(URI("#{url}/"))

  def gone?(pid)
    assert_eventually("process #{pid} still runs") { !running?(pid) }
  end

  def running?(pid)
    Process.kill(0, pid) && !File.read("/proc/#{pid}/stat").include?(") Z ")
  rescue Errno::ESRCH, Errno::ENOENT
    false
  end

  def assert_eventually(message)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
    sleep 0.02 until (done = yield) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert done, message
  end
end
