# frozen_string_literal: true

require "test_helper"
require "brotli"
require "serve/journal_requests"
require "support/mounted_application"
require "support/printed_proxies"

# Real proxies with the configuration that `castellan proxy` prints, in front of a server: a change reaches them, and only what it concerns.
class PurgeProxiesTest < Minitest::Test
  include PrintedProxies

  def setup
    needs :postgres
    @journal = Journal.active_record(:postgres)
    @journal.fill
    @tag = Class.new(@journal.models::TagResource) { cache_control s_maxage: 600 }
    @asked = Queue.new
    @varied = []
  end

  def teardown
    @purge&.stop
    @purge&.uninstall(@tag)
  end

  def test_varnish
    serve { |port| with_proxy("varnish", port) { |url| check(url, Castellan::Purge::Varnish.new(url)) } }
  end

  def test_varnish_with_xkey
    needs :xkey
    serve { |port| with_proxy("varnish", port, "--xkey") { |url| check_purge_of_a_url(url) } }
    serve do |port|
      with_proxy("varnish", port, "--xkey") do |url|
        check(url, Castellan::Purge::Varnish.new(url))
        refute get("#{url}/tags/3").key?("xkey")
      end
    end
  end

  def test_nginx
    serve { |port| with_proxy("nginx", port) { |url| check(url, Castellan::Purge::Refresh.new(url)) } }
  end

  def test_haproxy
    serve do |port|
      with_proxy("haproxy", port) do |url, server|
        check(url, Castellan::Purge::Refresh.new(url, timeout: 0.5))
        check_stopped(url, server.pid)
      end
    end
  end

  def test_haproxy_sends_the_requests_of_a_server_that_is_down_to_the_next_one
    needs :haproxy
    serve do |port|
      server = Castellan::TestServers.haproxy do |listen|
        printed("haproxy", port, "--listen", listen.to_s).sub(/^ +server castellan .*/) do |line|
          "#{line}\n  server down 127.0.0.1:#{Castellan::TestServers.free_port}"
        end
      end
      assert_equal ["200"] * 4, Array.new(4) { get("#{server.base_url}/tags", "accept" => "application/vnd.api+json, a/b").code }
    ensure
      server&.stop
    end
  end

  RENAME = "UPDATE tags SET name = 'web' WHERE id = 3"

  def test_a_document_that_cannot_be_stored_again_leaves_the_proxy
    %w[nginx haproxy].each do |kind|
      assert_leaves(kind, "DELETE FROM taggings; DELETE FROM tags WHERE id = 3")
      large = [200, { "cache-control" => "public, s-maxage=600", "content-length" => "1100000" }, ["x" * 1_100_000]]
      varied = [200, { "cache-control" => "public, s-maxage=600", "vary" => "accept-language" }, ["varied"]]
      [large, varied].each { |answer| assert_leaves(kind, RENAME) { ->(_env) { answer } } }
      private = Class.new(@journal.models::TagResource)
      assert_leaves(kind, RENAME) { Castellan.app { resource private } }
      assert_leaves(kind, RENAME) { ->(_env) { [429, { "retry-after" => "60" }, ["slower"]] } }
      assert_leaves(kind, RENAME) { ->(env) { env["HTTP_CASTELLAN_REFRESH"] ? hang(env) : [500, {}, ["broken"]] } }
    end
  end

  # As rack-cors does it.
  def test_no_variant_of_a_purged_document_stays_if_a_middleware_adds_a_field_to_vary
    %w[nginx haproxy varnish].each do |kind|
      @journal.fill
      serve(->(fields) { fields["vary"] += ", Origin" }) do |port|
        with_proxy(kind, port) do |url|
          proxy = kind == "varnish" ? Castellan::Purge::Varnish.new(url) : Castellan::Purge::Refresh.new(url)
          @purge = Castellan::Purge.new(@journal.source, [proxy], again_after: nil)
          @purge.install(@tag)
          texts = -> { %w[https://a.org https://b.org].map { |origin| get("#{url}/tags/3", "origin" => origin).body } }
          texts.call
          @journal.run(RENAME)
          @purge.call
          texts.call.each { |text| assert_includes text, %("web"), kind }
          @purge.uninstall(@tag)
        end
      end
    end
  end

  # As Rails 8.0.5.2 does it.
  def test_nginx_and_haproxy_store_a_purged_document_that_varies_by_x_requested_with_for_requests_without_it
    %w[nginx haproxy].each do |kind|
      @journal.fill
      serve(->(fields) { fields["vary"] += ", X-Requested-With" }) { |port| check_requested_with(kind, port) }
    end
  end

  def test_only_a_purger_removes_a_document_from_nginx_and_haproxy
    accept = { "accept" => "application/vnd.api+json" }
    serve do |port|
      %w[nginx haproxy].each do |kind|
        with_proxy(kind, port) do |url|
          assert_equal %w[/tags/2], asked_after("#{url}/tags/2", accept)
          assert_empty asked_after("#{url}/tags/2", **accept, "x-forwarded-for" => "192.0.2.7")
        end
        with_proxy(kind, port, "--purger", "192.0.2.1") { |url| assert_empty asked_after("#{url}/tags/2", accept) }
      end
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
    old = ->(env) { [200, { "content-type" => "text/plain" }, ["old #{env["PATH_INFO"]} #{env["HTTP_X_FORWARDED_HOST"]}"]] }
    Castellan::TestServers.puma(old) do |rest|
      serve do |port|
        options = ["--only", "/tags", "--rest", rest]
        %w[varnish haproxy nginx].each { |kind| with_proxy(kind, port, *options) { |url| check_split(url) } }
      end
    end
  end

  def test_varnish_purges_a_url_for_its_purgers_alone
    serve do |port|
      with_proxy("varnish", port) do |url|
        check_purge_of_a_url(url)
        assert_equal "403", purge("#{url}/tags/2", "x-forwarded-for" => "192.0.2.7").code, "a client of a TLS proxy on this machine"
        check_host_in_upper_case(url)
      end
      with_proxy("varnish", port, "--purger", "192.0.2.1") do |url|
        tag_name(url, 2)
        assert_equal "403", purge("#{url}/tags/2").code
        drained
        tag_name(url, 2)
        assert_empty drained, "the document is still there"
      end
    end
  end

  # Clients with other Accept and Accept-Encoding fields, which the document varies by, and without.
  VARIANTS = [nil, "*/*", "application/vnd.api+json"].product([nil, "identity", "gzip", "gzip, br"]).map do |accept, coding|
    { "accept" => accept, "accept-encoding" => coding }.compact
  end.freeze

  def test_a_change_replaces_every_variant_of_a_document
    keeping_compressed_documents do
      { "varnish" => Castellan::Purge::Varnish, "nginx" => Castellan::Purge::Refresh, "haproxy" => Castellan::Purge::Refresh }
        .each { |kind, purge| check_variants(kind, purge) }
    end
  end

  # Declared as public: one response for all. Other paths: one for each request.
  CACHED = %w[/api/posts /api/posts/1 /api/notes /api/writers/1/posts].freeze
  PASSED = %w[/api/posts/drafts /api/posts/drafts/1 /api/people /api/fans /api/writers /private/posts /api/openapi.json].freeze

  { "rack" => MountedApplication::RACK, "rails" => MountedApplication::RAILS }.each do |name, source|
    define_method("test_a_configuration_from_an_application_of_#{name}_does_what_it_declares") do
      mounted(source) do |port, file, rest|
        %w[nginx varnish haproxy].each do |kind|
          with_proxy(kind, port, file, "--rest", rest) { |url| check_declared(kind, url) }
        end
      end
    end
  end

  def test_clients_of_varnish_with_cookies_share_only_what_is_declared_and_sent_as_public
    mounted(MountedApplication::RACK) do |port, file, _rest|
      with_proxy("varnish", port, file) do |url|
        CACHED.each { |path| assert_equal 1, numbers(url + path, "cookie").uniq.size, path }
        PASSED.each { |path| assert_equal 3, numbers(url + path, "cookie").uniq.size, path }
      end
    end
    mounted(MountedApplication::RACK, "CHANGED" => "1") do |port, file, _rest|
      with_proxy("varnish", port, file) { |url| CACHED.each { |path| assert_equal 3, numbers(url + path, "cookie").uniq.size, path } }
    end
  end

  def test_an_outdated_configuration_stores_nothing_private
    mounted(MountedApplication::RACK, "CHANGED" => "1") do |port, file, _rest|
      %w[nginx varnish haproxy].each do |kind|
        with_proxy(kind, port, file) { |url| [*CACHED, *PASSED].each { |path| assert_equal 3, numbers(url + path).uniq.size, path } }
      end
    end
  end

  def test_what_is_declared_as_private_is_not_looked_up_in_the_cache
    mounted(MountedApplication::RACK) do |port, file, _rest|
      with_env("CHANGED" => "1") do
        %w[nginx varnish haproxy].each do |kind|
          with_proxy(kind, port, file) { |url| CACHED.each { |path| assert_equal 3, numbers(url + path).uniq.size, "#{kind} #{path}" } }
        end
      end
    end
  end

  def test_nginx_does_not_store_documents_whose_cdn_cache_control_has_changed
    mounted(MountedApplication::RACK) do |port, file, _rest|
      File.write(file, File.read(file).sub("cdn: { max_age: 600", "cdn: { max_age: 6000"))
      with_proxy("nginx", port, file) { |url| assert_equal 3, numbers("#{url}/api/notes").uniq.size }
    end
  end

  private

  def check_requested_with(kind, port)
    with_proxy(kind, port) do |url|
      @purge = Castellan::Purge.new(@journal.source, [Castellan::Purge::Refresh.new(url)], again_after: nil)
      @purge.install(@tag)
      ask = ->(fields = {}) { 2.times.map { get("#{url}/tags/3", fields).body } + drained }
      assert_equal ["/tags/3"], ask.call.drop(2), kind
      assert_match(/x-requested-with/i, get("#{url}/tags/3")["vary"], kind)
      assert_equal ["/tags/3"] * 2, ask.call("x-requested-with" => "XMLHttpRequest").drop(2), kind
      assert_empty ask.call.drop(2), kind
      @journal.run(RENAME)
      @purge.call
      drained
      [{}, { "x-requested-with" => "a:b" }].each { |fields| ask.call(fields).first(2).each { |text| assert_includes text, %("web"), kind } }
      @purge.uninstall(@tag)
    end
  end

  def serve(middleware = ->(_fields) { true })
    @app = nil
    answer = lambda do |env|
      @asked << env["PATH_INFO"]
      (@app ||= build).call(env).tap { |_, fields, _| middleware.call(fields) && @varied |= [fields["vary"]] }
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

  # The block returns the application of later requests.
  def assert_leaves(kind, sql)
    @journal.fill
    serve do |port|
      with_proxy(kind, port) do |url|
        @purge = Castellan::Purge.new(@journal.source, [Castellan::Purge::Refresh.new(url, timeout: 0.5)], again_after: nil)
        @purge.install(@tag)
        drained
        2.times { get("#{url}/tags/3") }
        assert_equal %w[/tags/3], drained
        @app = yield if block_given?
        @journal.run(sql)
        @purge.call
        2.times { assert_equal response("http://127.0.0.1:#{port}/tags/3"), response("#{url}/tags/3"), kind }
        @purge.uninstall(@tag)
      end
    end
  end

  def hang(env)
    (@hung ||= []) << env["rack.hijack"].call
    [200, {}, []]
  end

  def response(url)
    response = get(url)
    [response.code, response.body]
  end

  # @return [Array<String>] the paths that the application sees after a PURGE of a document that the proxy has
  def asked_after(url, fields)
    get(url)
    purge(url, fields)
    drained
    get(url)
    drained
  end

  def keeping_compressed_documents
    before = Castellan.keeper
    tables = %w[tags taggings posts writers]
    versions = Castellan::Versions::ExactVersions.new(@journal.source)
    versions.install(tables)
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions, compress: %w[gzip br])
    @tag = Class.new(@tag) do
      # Only what has a name is kept.
      def self.name = "VariantsTagResource"
      cache :exact
    end
    yield
  ensure
    Castellan.keeper = before
    versions.uninstall(tables)
  end

  def check_variants(kind, purge)
    serve do |port|
      with_proxy(kind, port) do |url|
        @purge = Castellan::Purge.new(@journal.source, [purge.new(url)], again_after: nil, log: ->(_line) {})
        @purge.install(@tag)
        %w[one two].each do |name|
          @journal.run("UPDATE tags SET name = '#{name}' WHERE id = 3")
          @purge.call
          %w[/tags/3 /tags /tags/3?].product(VARIANTS).each { |path, fields|
            2.times {
              assert_equal name, variant(url + path, fields), kind
            }
          }
        end
        assert_includes @varied, "accept, accept-encoding", "the list is compressed"
        @purge.uninstall(@tag)
      end
    end
  end

  # Net::HTTP adds fields that are absent here.
  def variant(url, fields)
    request = Net::HTTP::Get.new(URI(url))
    %w[accept accept-encoding].each { |name| request[name] = fields[name] }
    response = Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.request(request) }
    body = { "gzip" => Zlib.method(:gunzip), "br" => Brotli.method(:inflate), nil => :itself.to_proc }
           .fetch(response["content-encoding"]).call(response.body.b)
    [JSON.parse(body)["data"]].flatten.find { |tag| tag["id"] == "3" }["attributes"]["name"]
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
    assert_equal "old /posts ", get("#{url}/posts").body
    assert_equal "old /tagsoup a.org", get("#{url}/tagsoup", "x-forwarded-host" => "a.org").body
  end

  def mounted(source, env = {})
    old = ->(request) { [200, { "content-type" => "text/plain" }, ["old #{request["PATH_INFO"]}"]] }
    Dir.mktmpdir do |dir|
      File.write(file = File.join(dir, "config.ru"), source)
      Castellan::TestServers.puma(old) do |rest|
        Castellan::TestServers.puma(file, env: env) { |url| yield URI(url).port, file, rest }
      end
    end
  end

  def check_declared(kind, url)
    CACHED.each { |path| assert_equal 1, numbers(url + path).uniq.size, "#{kind} #{path}" }
    PASSED.each { |path| assert_equal 3, numbers(url + path).uniq.size, "#{kind} #{path}" }
    assert_equal "401", get("#{url}/private/posts").code
    %w[/ /api /api/tags /api/postscript /private].each { |path| assert_equal "old #{path}", get(url + path).body }
    return unless kind == "varnish"

    number = get("#{url}/api/posts")["x-number"]
    assert_equal "200", purge("#{url}/api/posts").code
    refute_equal number, get("#{url}/api/posts")["x-number"]
  end

  # @return [Array<String>] of the requests that the application has seen
  def numbers(url, *names)
    Array.new(3) do |viewer|
      response = get(url, { "x-viewer" => viewer.to_s, **names.to_h { |name| [name, viewer.to_s] } })
      assert_equal "200", response.code, "#{url} #{response.body}"
      response["x-number"]
    end
  end

  # The same URL as http and as https; another document stays.
  def check_purge_of_a_url(url)
    requests = [["/tags/2"], ["/tags/2", "https"], ["/tags/3"]]
    ask = -> { requests.each { |path, protocol| get(url + path, { "x-forwarded-proto" => protocol }.compact) } }
    2.times { ask.call }
    assert_equal %w[/tags/2 /tags/2 /tags/3], drained
    assert_equal "200", purge("#{url}/tags/2").code
    ask.call
    assert_equal %w[/tags/2 /tags/2], drained
    assert_equal "200", purge("#{url}/unknown").code
  end

  def check_host_in_upper_case(url)
    get("#{url}/tags/2", "host" => "example.org")
    assert_equal "200", purge("#{url}/tags/2", "host" => "EXAMPLE.org").code
    drained
    get("#{url}/tags/2", "host" => "example.org")
    assert_equal %w[/tags/2], drained
  end

  def purge(url, fields = {})
    uri = URI(url)
    Net::HTTP.start(uri.host, uri.port) { |http| http.request(Net::HTTPGenericRequest.new("PURGE", false, true, uri.path, fields)) }
  end

  def get(url, fields = {})
    Net::HTTP.get_response(URI(url), { "accept" => "application/vnd.api+json", **fields })
  end

  def tag_name(url, id)
    response = get("#{url}/tags/#{id}")
    assert_equal "200", response.code, response.body
    JSON.parse(response.body)["data"]["attributes"]["name"]
  end

  def drained
    Array.new(@asked.size) { @asked.pop }
  end
end
