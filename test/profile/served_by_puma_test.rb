# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "net/http"
require "rack/lint"
require "rack/mock"
require "tmpdir"

# The middleware in a real server, and between two of Rack's own judges.
class ProfileServedByPumaTest < Minitest::Test
  CONFIG = <<~'RUBY'
    $LOAD_PATH.unshift(%<lib>p)
    require "castellan"
    require "sequel"
    directory = %<directory>p
    use Castellan::Profile::Middleware, authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }, environment: "production",
                                        store: Castellan::Store::DirectoryStore.new(File.join(directory, "profiles"))
    database = nil
    run(lambda do |env|
      database ||= Sequel.sqlite(File.join(directory, "library.sqlite3"))
      number = env["QUERY_STRING"].to_i
      body = case env["PATH_INFO"]
             when "/stream" then ->(stream) { number.times { stream.write("#{database["SELECT 1 AS a"].first[:a]}\n") } && stream.close }
             when "/lazy" then Enumerator.new { |yielder| number.times { yielder << database["SELECT 1 AS a"].first[:a].to_s } }
             else [Array.new(number) { database["SELECT 1 AS a"].first[:a] }.join]
             end
      [200, { "content-type" => "text/plain", "x-pid" => Process.pid.to_s }, body]
    end)
  RUBY

  def setup
    super
    @directory = Dir.mktmpdir
    @config = File.join(@directory, "config.ru")
    File.write(@config, format(CONFIG, lib: File.join(ROOT, "lib"), directory: @directory))
  end

  def teardown
    @server&.stop
    FileUtils.rm_rf(@directory)
    super
  end

  def get(path, headers = { "X-Admin" => "yes" }) = Net::HTTP.get_response(URI("#{@server.base_url}#{path}"), headers)

  def results = Castellan::Profile::Results.new(Castellan::Store::DirectoryStore.new(File.join(@directory, "profiles")))

  # @return [Array<Castellan::Profile::ResultSummary>] once there are as many: a server closes a body when the client has it
  def latest(count)
    deadline = Castellan::Clock.monotonic_ns + 20_000_000_000
    until (found = results.latest(limit: 100)).size >= count
      flunk("only #{found.size} of #{count} profiles came") if Castellan::Clock.monotonic_ns > deadline
      Thread.pass
    end
    found
  end

  def test_requests_of_many_threads_and_every_kind_of_body
    @server = Castellan::TestServers.puma(@config, threads: 16)
    kinds = %w[/array /lazy /stream]
    bodies = Array.new(24) { |number| Thread.new { get("#{kinds[number % 3]}?#{number}") } }.map(&:value)
    bodies.each_with_index { |response, number| assert_equal number, response.body.count("1") }
    assert(bodies.all? { |response| response["server-timing"].start_with?("db;dur=") })
    expected = Array.new(24) { |number| [kinds[number % 3], number.to_s, number] }
    assert_equal expected.sort, latest(24).map { |one| [one.path, one.query, one.queries] }.sort
    assert_equal [nil, 21, 22], latest(24).sort_by { |one| one.query.to_i }.last(3).map(&:response_bytes).values_at(2, 0, 1)
  end

  def test_an_array_has_its_length_as_without_the_profiler
    @server = Castellan::TestServers.puma(@config)
    with, without = get("/array?5"), get("/array?5", {})
    assert_equal %w[5 5], [with["content-length"], without["content-length"]]
    assert_equal with.to_hash.keys - %w[server-timing cache-control], without.to_hash.keys
    assert_equal "11", get("/castellan?2", {}).body
  end

  def test_any_worker_shows_the_results_of_the_others
    @server = Castellan::TestServers.puma(@config, threads: 2, env: { "WEB_CONCURRENCY" => "2" })
    pids = []
    25.times { pids |= Array.new(8) { Thread.new { get("/array?1")["x-pid"] } }.map(&:value) if pids.size < 2 }
    assert_equal 2, pids.size
    id = latest(8).last.id
    12.times { assert_equal "200", get("/castellan/requests/#{id}").code }
  end

  # Rack's own judge, inside and outside.
  def test_rack_finds_nothing_wrong
    kinds = { "/array" => -> { ["a"] }, "/lazy" => -> { Enumerator.new { |yielder| yielder << "a" } } }
    app = Rack::Lint.new(->(env) { [200, { "content-type" => "text/plain" }, kinds.fetch(env["PATH_INFO"]).call] })
    middleware = Castellan::Profile::Middleware.new(app, authorize: ->(_env) { true }, environment: nil)
    kinds.each_key { |path| assert_equal "a", Rack::MockRequest.new(Rack::Lint.new(middleware)).get(path).body }
    assert_equal 200, Rack::MockRequest.new(Rack::Lint.new(middleware)).get("/castellan").status
    assert_equal 2, middleware.results.latest.size
  end
end
