# frozen_string_literal: true

# Measures the time from a commit until nginx, Varnish and HAProxy send the changed document, and the cost for
# writers.
#
#   rake bench:purge                 # writes benchmark/purge.md; half a minute
#   BENCH_SHORT=1 rake bench:purge   # only checks that it works
#
# Each round requests a document through the proxy until it is cached, changes its record by SQL, and repeats
# the request until the new document arrives. The proxies have the configuration of `castellan proxy`.
# Everything runs on one machine, PostgreSQL without fsync.
require "etc"
require "json"
require "net/http"
require "sequel"
require "tmpdir"
require "stringio"
require "castellan"
require_relative "../test/support/servers"

class PurgeBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 2 : 50
  WRITES = SHORT ? 20 : 2_000
  GOAL_MS = 50
  SERVERS = Castellan::TestServers

  def run
    needed = %i[postgres nginx varnish haproxy].reject { |name| SERVERS.available?(name) }
    abort "bench:purge needs #{needed.join(", ")}." if needed.any?
    @db = Sequel.connect(SERVERS.postgres_url)
    create
    @rows = [["Varnish", *varnish], ["nginx", *nginx], ["HAProxy", *haproxy]]
    @writers = writers
    puts page
    File.write(File.join(__dir__, "purge.md"), page) unless SHORT
    File.write(ENV.fetch("BENCH_JSON"), lines.join, mode: "a") if ENV["BENCH_JSON"]
  end

  private

  def create
    @db.create_table(:tags) do
      primary_key :id
      String :name
      Integer :uses, default: 0
    end
    @db[:tags].multi_insert(Array.new(100) { |number| { name: "tag #{number}" } })
    db = @db
    tag = Class.new(Sequel::Model(db[:tags]))
    @resource = Class.new(Castellan::Resource) do
      model tag
      type "tags"
      attributes :name, :uses
      cache_control s_maxage: 600
    end
  end

  def varnish
    serve { |port| SERVERS.varnish(port, vcl: printed("varnish", port)) { |url| measure(url, Castellan::Purge::Varnish.new(url)) } }
  end

  def nginx
    serve do |port|
      listen = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      conf = printed("nginx", port, "--listen", listen.to_s, "--dir", Dir.mktmpdir)
      url = "http://127.0.0.1:#{listen}"
      SERVERS.nginx(port, "location / { return 404; }", http: conf) { measure(url, Castellan::Purge::Refresh.new(url)) }
    end
  end

  def haproxy
    serve do |port|
      server = SERVERS.haproxy { |listen| printed("haproxy", port, "--listen", listen.to_s) }
      measure("http://127.0.0.1:#{server.port}", Castellan::Purge::Refresh.new("http://127.0.0.1:#{server.port}"))
    ensure
      server&.stop
    end
  end

  def serve
    app = nil
    SERVERS.puma(->(env) { (app ||= application).call(env) }) { |url| yield URI(url).port }
  end

  def application
    resource = @resource
    purge = @purge
    Castellan.app do
      resource(resource)
      purge(purge)
    end
  end

  def printed(kind, port, *options)
    out = StringIO.new
    Castellan::CLI.call(["proxy", kind, "--app", "http://127.0.0.1:#{port}", *options], out: out).zero? or abort "castellan proxy failed"
    out.string
  end

  # @return [Array<Float>] the median, the 95th percentile and the maximum in milliseconds
  def measure(url, proxy)
    @purge = Castellan::Purge.new(@db, [proxy], again_after: nil)
    @purge.install(@resource)
    @purge.start
    uri = URI("#{url}/tags/7")
    times = Net::HTTP.start(uri.host, uri.port) { |http| Array.new(ROUNDS) { |number| round(http, uri.path, "#{url} #{number}") } }
    figures(times)
  ensure
    @purge.stop
  end

  def round(http, path, name)
    2.times { read(http, path) }
    @db[:tags].where(id: 7).update(name: name)
    started = now
    nil until read(http, path) == name || (now - started > 10_000 && abort("bench:purge: #{name} was never purged"))
    now - started
  end

  def read(http, path)
    JSON.parse(http.get(path, "accept" => "application/vnd.api+json").body)["data"]["attributes"]["name"]
  end

  # @return [Float] how many times longer an UPDATE takes with the triggers
  def writers
    without, with = [-> { @purge.uninstall(@resource) }, -> { @purge.install(@resource) }].map do |before|
      before.call
      started = now
      WRITES.times { |number| @db[:tags].where(id: (number % 100) + 1).update(uses: number) }
      now - started
    end
    with / without
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)

  def figures(times)
    sorted = times.sort
    [sorted[sorted.size / 2], sorted[(sorted.size * 0.95).floor.clamp(0, sorted.size - 1)], sorted.last].map { |ms| ms.round(1) }
  end

  def lines
    @rows.map { |row| "#{JSON.generate(%w[proxy median p95 max].zip(row).to_h)}\n" }
  end

  def page
    verdict = @rows.all? { |_, _, p95| p95 <= GOAL_MS } ? "reached" : "**not reached**"
    <<~TEXT
      # From a commit to the proxy

      Written by `rake bench:purge`: Ruby #{RUBY_VERSION}, #{Etc.nprocessors} processors, #{RUBY_PLATFORM}. #{ROUNDS} rounds each: one record is
      changed with SQL, and the proxy is asked until it sends the new document.

      | proxy | median, ms | 95 %, ms | longest, ms |
      |---|---|---|---|
      #{@rows.map { |row| "| #{row.join(" | ")} |" }.join("\n")}

      Goal: 95 % in at most #{GOAL_MS} ms: #{verdict}. An UPDATE takes #{@writers.round(2)} × as long with the triggers as without
      (PostgreSQL without fsync, one writer, #{WRITES} updates).
    TEXT
  end
end

PurgeBenchmark.new.run
