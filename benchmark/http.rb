# frozen_string_literal: true

# Compares hits of Castellan::HTTPCache with rack-cache, nginx, Varnish and constant bytes from the same Puma.
#
#   rake bench:http                 # writes benchmark/http.md; about three minutes
#   BENCH_SHORT=1 rake bench:http   # only checks that it works and that the responses are equal
#
# Also measures the middleware on a path that it does not cache. Clients and servers share the machine. Before
# the measurement, responses are compared, and hits are verified to be hits.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "etc"
require "json"
require "net/http"
require "castellan"
require_relative "../test/support/servers"
require_relative "support/wrk"

class HTTPBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS, SECONDS, CALLS = SHORT ? [1, 1, 100] : [12, 1, 100_000]
  CLIENTS = 10
  THREADS = CLIENTS + 2 # with spare threads, Puma 8.0 rarely loses a response (`Contest::LOST` of bench:serve)
  LOST = 5
  CONFIG = File.expand_path("http/config.ru", __dir__)
  NGINX = "location / { proxy_pass http://backend; proxy_cache c; proxy_cache_valid 200 1h; }"
  CONDITION = { "If-None-Match" => "\"one\"" }.freeze
  # name => [environment of the application, proxy in front of it, path, header fields, way to compare with]
  WAYS = {
    "constant bytes" => [{ "CACHE" => "none" }, nil, "/", {}, nil],
    "Castellan::HTTPCache" => [{ "CACHE" => "castellan" }, nil, "/", {}, "constant bytes"],
    "Castellan::HTTPCache, Vary" => [{ "CACHE" => "vary" }, nil, "/", { "Accept-Encoding" => "gzip, br" }, "constant bytes"],
    "Castellan::HTTPCache in Redis" => [{ "CACHE" => "redis" }, nil, "/", {}, "constant bytes"],
    "rack-cache" => [{ "CACHE" => "rack-cache" }, nil, "/", {}, "constant bytes"],
    "nginx" => [{ "CACHE" => "none" }, :nginx, "/", {}, "constant bytes"],
    "Varnish" => [{ "CACHE" => "none" }, :varnish, "/", {}, "constant bytes"],
    "a constant 304" => [{ "CACHE" => "none" }, nil, "/304", CONDITION, nil],
    "Castellan::HTTPCache, 304" => [{ "CACHE" => "castellan" }, nil, "/", CONDITION, "a constant 304"],
    "rack-cache, 304" => [{ "CACHE" => "rack-cache" }, nil, "/", CONDITION, "a constant 304"]
  }.freeze

  def run
    @load = File.exist?("/proc/loadavg") ? File.read("/proc/loadavg").split.first : "unknown"
    @addresses = WAYS.select { |_, way| installed?(way) }.to_h { |name, way| [name, start(way)] }
    compare
    @rates = @addresses.to_h { |name, _| [name, []] }
    @addresses.each_key { |name| rate(name) } # warm up
    ROUNDS.times { |round| (round.odd? ? @addresses.keys.reverse : @addresses.keys).each { |name| @rates[name] << rate(name) } }
    text = page
    puts text
    File.write(File.join(__dir__, "http.md"), text) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  ensure
    Castellan::TestServers.stop_all
  end

  private

  def installed?(way)
    environment, proxy = way
    (proxy.nil? || Castellan::TestServers.available?(proxy)) && (environment["CACHE"] != "redis" || Castellan::TestServers.available?(:redis))
  end

  # Ways with the same application and proxy share a server.
  def start(way)
    environment, proxy = way
    environment = environment.merge("REDIS_URL" => Castellan::TestServers.redis_url) if environment["CACHE"] == "redis"
    (@servers ||= {})[[environment, proxy]] ||= begin
      application = (@applications ||= {})[environment] ||= Castellan::TestServers.puma(CONFIG, env: environment, threads: THREADS)
      case proxy
      when :nginx then Castellan::TestServers.nginx(application.port, NGINX, http: "proxy_cache_path cache keys_zone=c:1m;")
      when :varnish then Castellan::TestServers.varnish(application.port)
      else application
      end.base_url
    end
  end

  def compare
    bodies = WAYS.slice(*@addresses.keys).map do |name, (environment, proxy, path, fields)|
      Net::HTTP.get_response(URI("#{@addresses[name]}/"), fields.except("If-None-Match"))
      first, second = Array.new(2) { Net::HTTP.get_response(URI("#{@addresses[name]}#{path}"), fields) }
      cached = environment["CACHE"] != "none" || proxy
      abort "#{name} does not answer from its cache" if cached && first["x-made"] != second["x-made"]
      abort "#{name} answers #{second.code}" unless second.code == (fields.key?("If-None-Match") ? "304" : "200")
      second.body unless second.code == "304"
    end
    abort "the caches answer different bytes" unless bodies.compact.uniq.one?
  end

  # @return [Float] requests per second
  def rate(name)
    _environment, _proxy, path, fields = WAYS.fetch(name)
    Benchmarks::Wrk.rate("#{@addresses[name]}#{path}", clients: CLIENTS, seconds: SECONDS, headers: fields, lost: LOST)
  end

  def median(name)
    Castellan::Figures.median(@rates.fetch(name))
  end

  # The percentage of the rate to compare with, in each round.
  def share(name)
    other = WAYS.fetch(name).last or return ["", ""]
    percents = @rates[name].zip(@rates[other]).map { |ours, theirs| (100 * ours / theirs).round }
    ["#{(100 * median(name) / median(other)).round} %", "#{percents.min}..#{percents.max} %"]
  end

  # @return [Hash{String => Float}] microseconds per call
  def calls
    response = [200, {}, []].freeze
    application = ->(_env) { response }
    caches = { "the application alone" => application, "Castellan::HTTPCache, another path" => Castellan::HTTPCache.new(application, only: ["/api"]) }
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/other", "QUERY_STRING" => "", "SCRIPT_NAME" => "", "HTTP_HOST" => "example.org" }
    caches.transform_values { |cache| Castellan::Figures.median(Array.new(ROUNDS) { microseconds { CALLS.times { cache.call(env) } } / CALLS }) }
  end

  def microseconds
    started = Castellan::Clock.monotonic_ns
    yield
    (Castellan::Clock.monotonic_ns - started) / 1_000.0
  end

  def rows
    @rates.keys.map { |name| { work: "http", way: name, requests_per_second: median(name).round } }
  end

  def page
    versions = %w[puma rack rack-cache].map { |gem| "#{gem} #{Gem.loaded_specs[gem]&.version}" }.join(", ")
    ["# Hits of HTTP caches", "",
     "Written by `rake bench:http`: Ruby #{RUBY_VERSION}, #{Etc.nprocessors} processors, #{versions}. #{CLIENTS} connections of wrk, " \
     "keep-alive; #{ROUNDS} rounds of #{SECONDS} s in turns, medians. One Puma with #{THREADS} threads; clients and servers on " \
     "the same machine, so a server that is faster than the clients shows their limit. The answers were compared first. Load of the " \
     "machine before the run: #{@load}.", "",
     "| way | requests/s | of the constant answer | rounds |", "|---|---|---|---|",
     *@rates.keys.map { |name| "| #{[name, median(name).round, *share(name)].join(" | ")} |" }, "",
     "| a call on a path that the cache leaves alone | µs |", "|---|---|",
     *calls.map { |name, time| "| #{name} | #{time.round(2)} |" }, ""].join("\n")
  end
end

HTTPBenchmark.new.run
