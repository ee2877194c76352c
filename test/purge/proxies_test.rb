# frozen_string_literal: true

require "test_helper"
require "net/http"
require "serve/journal_requests"

# Real proxies with the configuration that `castellan proxy` prints, in front of a server: a change reaches them, and only what it concerns.
class PurgeProxiesTest < Minitest::Test
  def setup
    needs :postgres
    @journal = Journal.active_record(:postgres)
    @journal.fill
    @tag = Class.new(@journal.models::TagResource) { cache_control s_maxage: 600 }
    @asked = Queue.new
  end

  def teardown
    @purge&.stop
    @purge&.uninstall(@tag)
  end

  def test_varnish
    needs :varnish
    serve do |port|
      Castellan::TestServers.varnish(port, vcl: printed("varnish", port)) { |url| check(url, Castellan::Purge::Varnish.new(url)) }
    end
  end

  def test_nginx
    needs :nginx
    serve do |port|
      listen = free_port
      conf = printed("nginx", port, "--listen", listen.to_s, "--dir", Dir.mktmpdir)
      Castellan::TestServers.nginx(port, "location / { return 404; }", http: conf) do
        check("http://127.0.0.1:#{listen}", Castellan::Purge::Refresh.new("http://127.0.0.1:#{listen}"))
      end
    end
  end

  def test_haproxy
    needs :haproxy
    serve do |port|
      server = Castellan::TestServers.haproxy { |listen| printed("haproxy", port, "--listen", listen.to_s) }
      url = "http://127.0.0.1:#{server.port}"
      check(url, Castellan::Purge::Refresh.new(url, timeout: 0.5))
      check_stopped(url, server.pid)
    ensure
      server&.stop
    end
  end

  def test_the_middleware
    store = Castellan::Store::MemoryStore.new
    @purge = Castellan::Purge.new(@journal.source, [Castellan::Purge::Middleware.new(store)], again_after: nil, log: ->(_line) {})
    app = nil
    answer = lambda do |env|
      @asked << env["PATH_INFO"]
      (app ||= build).call(env)
    end
    Castellan::TestServers.puma(Castellan::HTTPCache.new(answer, store: store)) { |url| check(url, @purge.proxies.first) }
  end

  def test_a_middleware_without_its_store_is_an_error
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1", timeout: 0.05)
    _, err = capture_io do
      assert_raises(Castellan::Purge::Error) { Castellan::Purge::Middleware.new(store).purge(%w[a]) }
    end
    assert_includes err, "store fails"
  end

  def test_only_some_paths_go_to_castellan
    needs :nginx, :varnish, :haproxy
    old = ->(env) { [200, { "content-type" => "text/plain" }, ["old #{env["PATH_INFO"]}"]] }
    Castellan::TestServers.puma(old) do |rest|
      serve do |port|
        options = ["--only", "/tags", "--rest", rest]
        Castellan::TestServers.varnish(port, vcl: printed("varnish", port, *options)) { |url| check_split(url) }
        server = Castellan::TestServers.haproxy { |listen| printed("haproxy", port, "--listen", listen.to_s, *options) }
        check_split("http://127.0.0.1:#{server.port}")
        server.stop
        conf = printed("nginx", port, "--listen", (listen = free_port).to_s, "--dir", Dir.mktmpdir, *options)
        Castellan::TestServers.nginx(port, "location / { return 404; }", http: conf) { check_split("http://127.0.0.1:#{listen}") }
      end
    end
  end

  def test_wrong_arguments_print_a_correction
    { [] => "write nginx, varnish or haproxy", %w[squid] => "not squid", %w[nginx --only /a] => "--only needs --rest",
      ["nginx", "--app", "http://x/; }"] => "", ["varnish", "--only", "/a\"; }", "--rest", "http://b"] => "write a path",
      %w[nginx --purger all] => "write an address" }.each do |arguments, message|
      err = StringIO.new
      assert_equal 2, Castellan::CLI.call(["proxy", *arguments], out: StringIO.new, err: err)
      assert_includes err.string, message
    end
  end

  private

  def serve
    app = nil
    answer = lambda do |env|
      @asked << env["PATH_INFO"]
      (app ||= build).call(env)
    end
    Castellan::TestServers.puma(answer) { |url| yield URI(url).port }
  end

  def build
    tag = @tag
    purge = @purge
    Castellan.app do
      resource tag
      purge(purge) if purge
    end
  end

  def check(url, proxy)
    @purge = Castellan::Purge.new(@journal.source, [proxy], again_after: nil, log: ->(_line) {})
    @purge.install(@tag)
    @purge.start
    2.times { %w[/tags/2 /tags/3].each { |path| get(url + path) } }
    assert_equal %w[/tags/2 /tags/3], drained, "the second answers come from the proxy"
    refute get("#{url}/tags/3").key?("surrogate-key") unless proxy.is_a?(Castellan::Purge::Middleware)
    @journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    eventually { tag_name(url, 3) == "web" }
    assert_equal ["sql"], [tag_name(url, 2)]
    refute_includes drained, "/tags/2", "what does not contain the record stays"
  end

  def check_stopped(url, pid)
    Process.kill(:STOP, pid)
    @journal.run("UPDATE tags SET name = 'net' WHERE id = 2")
    eventually { @journal.rows("SELECT * FROM castellan_purges").any? }
    Process.kill(:CONT, pid)
    eventually { tag_name(url, 2) == "net" }
  end

  def check_split(url)
    assert_equal "http", tag_name(url, 3)
    assert_equal "old /posts", get("#{url}/posts").body
    assert_equal "old /tagsoup", get("#{url}/tagsoup").body
  end

  def printed(kind, port, *options)
    out = StringIO.new
    assert_equal 0, Castellan::CLI.call(["proxy", kind, "--app", "http://127.0.0.1:#{port}", *options], out: out)
    out.string
  end

  def get(url)
    Net::HTTP.get_response(URI(url), "accept" => "application/vnd.api+json")
  end

  def tag_name(url, id)
    response = get("#{url}/tags/#{id}")
    assert_equal "200", response.code, response.body
    JSON.parse(response.body)["data"]["attributes"]["name"]
  end

  def drained
    Array.new(@asked.size) { @asked.pop }
  end

  def free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end
end
