# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open3"
require "rack"
require "rack/deflater"
require "rack/lint"
require "rack/mock_request"
require "zlib"
require "brotli"
require "zstd-ruby"
require "document/library"

# Kept documents are also kept compressed; those with per-viewer attributes are spliced from compressed pieces.
class CompressedTest < Minitest::Test
  DECODE = { "gzip" => ->(bytes) { Zlib.gunzip(bytes) }, "br" => ->(bytes) { Brotli.inflate(bytes) },
             "zstd" => ->(bytes) { Zstd.decompress(bytes) } }.freeze

  def setup
    @before = Castellan.keeper
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @store = Castellan::Store::MemoryStore.new
    @keeper = Castellan.keep(store: @store, versions: @versions)
    @read = ->(ids) { ids.select { |id| id.to_i.odd? } }
    @app = app
  end

  def teardown
    Castellan.keeper = @before
    @versions.uninstall(Library::TABLES)
  end

  DECODE.each do |coding, decode|
    define_method("test_a_document_is_sent_and_kept_in_#{coding}") do
      plain = get("/articles")
      2.times do
        response = get("/articles", coding)
        assert_equal coding, response["content-encoding"]
        assert_equal response.body.bytesize.to_s, response["content-length"]
        assert_equal plain.body.b, decode.call(response.body.b).b
      end
    end
  end

  # MTIME of RFC 1952 §2.3.1: two processes that compress the same document send the same bytes.
  def test_gzip_holds_no_time
    assert_equal [0, 0], %w[/articles /personal].map { |path| get(path, "gzip").body.b.byteslice(4, 4).unpack1("V") }
  end

  def test_a_hit_compresses_and_reads_nothing
    get("/kept_authors", "gzip")
    sent = library.queries { Castellan::Cache::Compression.stub(:call, ->(*) { flunk }) { get("/kept_authors", "gzip") } }
    assert_empty sent
  end

  def test_each_coding_has_its_own_etag_and_all_vary
    responses = [nil, "gzip", "br"].map { |coding| get("/articles", coding) }
    etags = responses.map { |response| response["etag"] }
    assert_equal ["", "-gzip", "-br"], etags.map { |etag| etag[/-(gzip|br)"\z/] ? etag[/-\w+(?="\z)/] : "" }
    assert_equal ["accept, authorization, accept-encoding"], responses.map { |response| response["vary"] }.uniq
    assert_equal 304, get("/articles", "gzip", "HTTP_IF_NONE_MATCH" => etags[1]).status
    assert_equal [200, 200], [get("/articles", "gzip", "HTTP_IF_NONE_MATCH" => etags[0]).status,
                              get("/articles", nil, "HTTP_IF_NONE_MATCH" => etags[1]).status]
  end

  def test_a_304_compresses_nothing
    etag = get("/articles", "gzip")["etag"]
    @store.clear
    assert_equal 304, get("/articles", "gzip", "HTTP_IF_NONE_MATCH" => etag).status
    assert_equal 0, @store.size
  end

  def test_weights_choose
    { "gzip;q=0.5, br;q=0.1" => "gzip", "gzip, br, zstd" => "br", "*" => "br", "br;q=0, *;q=0.1" => "zstd", "identity" => nil,
      "gzip;q=0" => nil, "" => nil, "identity, gzip;q=0.9" => nil, "GZIP" => "gzip", "x-gzip" => "gzip", "gzip;q=2" => nil,
      "gzip;q=0.1234" => nil, "deflate" => nil, ";;,,=\xFF".b => nil, "gzip;level=1" => nil }
      .each { |header, coding| assert_equal [coding], [get("/articles", header)["content-encoding"]], header }
  end

  # CVE-2024-26146 and others: parsing was quadratic in the number of commas, spaces or weights.
  def test_an_enormous_accept_encoding_as_in_cve_2024_26146_is_not_read
    ["gzip," * 20_000, "#{" " * 50_000}gzip", "gzip;#{"q=1;" * 20_000}", "#{"a,gzip," * 11}gzip"].each do |header|
      objects = allocated_objects { assert_nil Castellan::HTTP::ContentCoding.choose(header, %w[gzip]) }
      assert_operator objects, :<, 100
    end
  end

  def test_a_deflater_compresses_nothing_again
    plain = get("/articles").body.b
    @app = Rack::Deflater.new(app)
    assert_equal plain, Zlib.gunzip(get("/articles", "gzip").body.b)
    assert_equal "Title 7", JSON.parse(Zlib.gunzip(get("/unkept", "gzip").body.b))["data"][0]["attributes"]["title"], "left to the deflater"
  end

  def test_a_document_that_is_not_kept_is_sent_as_it_is
    response = get("/unkept", "gzip")
    assert_equal [nil, "accept, authorization"], response.headers.values_at("content-encoding", "vary")
  end

  def test_after_a_write_another_form_is_sent
    before = get("/articles", "gzip")
    library.run("UPDATE articles SET title = 'changed'")
    after = get("/articles", "gzip")
    refute_equal before["etag"], after["etag"]
    assert_equal get("/articles").body.b, Zlib.gunzip(after.body.b)
  end

  # --- per-viewer attributes

  def test_a_personal_document_is_spliced_from_kept_pieces
    plain = get("/personal").body.b
    assert_includes plain, '"read":true'
    2.times { assert_equal plain, Zlib.gunzip(get("/personal", "br, gzip").body.b) }
    calls = 0
    @read = ->(ids) { (calls += 1) && ids.to_h { |id| [id, "<é>\n" * (id.to_i * 10_000)] } }
    sent = library.queries { @long = get("/personal", "gzip").body.b }
    assert_equal [1, []], [calls, sent]
    assert_equal get("/personal").body.b, Zlib.gunzip(@long)
  end

  def test_values_of_a_viewer_are_never_compressed_breach_gluck_2013
    secret = "a secret of the viewer, a secret of the viewer"
    @read = ->(ids) { ids.to_h { |id| [id, secret] } }
    assert_equal 3, get("/personal", "gzip").body.b.scan(secret).size
  end

  # BREACH: whatever a client guesses, the length is that of what is shared and what is personal.
  def test_the_length_tells_nothing_about_the_value_breach_gluck_2013
    lengths = ["Title 7", "xyzxyzx", "1234567"].map do |value|
      @read = ->(ids) { ids.to_h { |id| [id, value] } }
      get("/personal", "gzip").body.bytesize
    end
    assert_equal 1, lengths.uniq.size
  end

  def test_the_etag_is_of_the_values_and_the_coding
    one, two = [%w[7], %w[6]].map { |read| (@read = ->(_ids) { read }) && get("/personal", "gzip")["etag"] }
    refute_equal one, two
    assert one.end_with?('-gzip"')
    assert_equal 304, get("/personal", "gzip", "HTTP_IF_NONE_MATCH" => two).status
  end

  def test_no_answer_is_another_viewers
    threads = Array.new(4) do |number|
      Thread.new do
        Array.new(50) do |turn|
          viewer = ->(ids) { ids.to_h { |id| [id, "of #{number}.#{turn}"] } }
          body = Zlib.gunzip(request("/personal", "gzip", "test.viewer" => viewer).body.b)
          body.scan(/"read":"([^"]*)"/).flatten.uniq == ["of #{number}.#{turn}"]
        end.count(false)
      end
    end
    assert_equal 0, threads.sum(&:value)
  end

  def test_a_form_in_the_store_that_is_not_ours_is_a_miss
    plain = get("/personal").body.b
    [->(bytes) { bytes[0..-4] }, ->(bytes) { bytes.sub("a", "b") }, ->(_bytes) { "CE\x04\x00nonsense" }, ->(_bytes) { "" }].each do |spoil|
      get("/personal", "gzip")
      spoiling(spoil) { assert_equal plain, Zlib.gunzip(get("/personal", "gzip").body.b) }
    end
  end

  def test_clients_read_the_spliced_gzip
    Castellan::TestServers.puma(@app) do |base_url|
      url = "#{base_url}/personal"
      plain = Net::HTTP.get(URI(url), { "Accept-Encoding" => "identity" }).b
      assert_equal plain, Net::HTTP.get(URI(url)).b, "Net::HTTP"
      assert_equal plain, run_program("curl", "-s", "--compressed", url), "curl"
      assert_equal plain, run_program("gzip", "-dc", stdin: run_program("curl", "-s", "-H", "Accept-Encoding: gzip", url)), "GNU gzip"
      if node?
        assert_equal plain, run_program("node", "-e", "fetch('#{url}').then(r => r.text()).then(t => process.stdout.write(t))"),
                     "Node"
      end
    end
  end

  def test_chromium_reads_the_spliced_gzip
    needs :chromium
    require "ferrum"
    Castellan::TestServers.puma(@app) do |base_url|
      plain = Net::HTTP.get(URI("#{base_url}/personal"), { "Accept-Encoding" => "identity" })
      browser = Ferrum::Browser.new(**Castellan::TestServers.chromium)
      browser.go_to("#{base_url}/kept_authors")
      read = browser.evaluate_async(
        "fetch('/personal').then(async r => arguments[0]([r.headers.get('content-encoding'), await r.text()]))", 20
      )
      assert_equal plain.force_encoding("UTF-8"), read.last
    ensure
      browser&.quit
    end
  end

  # --- settings

  def test_a_browser_gets_a_page_of_a_kept_document
    models = library.models
    app = Castellan.app do
      pages
      resource models::KeptArticleResource, at: "articles"
    end
    2.times do
      response = Rack::MockRequest.new(app).get("/articles", "HTTP_ACCEPT" => "text/html", "HTTP_ACCEPT_ENCODING" => "gzip, deflate, br")
      assert_equal [200, "text/html; charset=utf-8", nil], [response.status, response["content-type"], response["content-encoding"]]
      assert_includes response.body, "<table"
    end
  end

  def test_codings_can_be_chosen
    Castellan.keep(store: @store, versions: @versions, compress: %w[gzip])
    assert_equal "gzip", get("/articles", "br, gzip")["content-encoding"]
    Castellan.keep(store: @store, versions: @versions, compress: [])
    assert_equal [nil, "accept, authorization"], get("/articles", "br, gzip").headers.values_at("content-encoding", "vary")
    [%w[deflate], true, false, { gzip: 1 }].each do |wrong|
      error = assert_raises(Castellan::ConfigurationError) { Castellan.keep(store: @store, versions: @versions, compress: wrong) }
      assert_equal "Castellan.keep compress: must be an Array of \"br\", \"zstd\" and \"gzip\", got #{wrong.inspect}; " \
                   "write for example compress: %w[gzip], or [] for none", error.message
    end
  end

  attr_reader :read

  private

  def library = Library.active_record(:sqlite)

  def app
    models = library.models
    test = self
    Rack::Lint.new(Castellan.app do
      resource models::KeptArticleResource, at: "articles"
      resource models::KeptAuthorResource, at: "kept_authors"
      resource models::ArticleResource, at: "unkept"
      resource models::PersonalArticleResource, at: "personal"
      authenticate { |env| env["test.viewer"] || ->(ids) { test.read.call(ids) } }
    end)
  end

  def get(path, coding = nil, env = {}) = request(path, coding, env)

  def request(path, coding, env)
    Rack::MockRequest.new(@app).get(path, { "HTTP_ACCEPT_ENCODING" => coding, **env }.compact)
  end

  def spoiling(spoil)
    store = @store
    Castellan::Keeper.new(store: store, versions: @versions).then { |keeper| Castellan.keeper = keeper }
    read = store.method(:read_multi)
    store.stub(:read_multi, ->(keys) {
      read.call(keys).to_h { |key, bytes|
        [key, key.end_with?(".gzip") ? spoil.call(bytes) : bytes]
      }
    }) { yield }
  end

  def run_program(*command, stdin: "")
    output, status = Open3.capture2(*command, stdin_data: stdin, binmode: true)
    assert status.success?, command.join(" ")
    output
  end

  def node? = system("node", "-e", "fetch", out: File::NULL, err: File::NULL)
end
