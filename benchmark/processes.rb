# frozen_string_literal: true

# Compares one and two processes behind nginx, with a page that is rendered each time or cached in Redis.
#
#   rake bench:processes                 # writes benchmark/processes.md; about a minute
#   BENCH_SHORT=1 rake bench:processes   # only checks that it works and that both processes send the same document
#
# Clients, nginx, PostgreSQL and Redis share the machine, so its processors limit the gain of the second
# process.
require "etc"
require "json"
require "net/http"
require "sequel"
require "castellan"
require "castellan/load_test"
require_relative "../test/support/servers"
require_relative "../examples/mail_logs/shared/schema"
require_relative "../examples/mail_logs/shared/seeds"

class ProcessesBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS, SECONDS = SHORT ? [1, 0.1] : [5, 2]
  CLIENTS = 10
  PATH = "/mail-logs?include=category,company"
  APPLICATION = File.expand_path("processes/config.ru", __dir__)
  PROXY = 'location / { proxy_pass http://both; proxy_http_version 1.1; proxy_set_header Connection ""; ' \
          "proxy_set_header Host $http_host; }"

  def run
    needed = %i[postgres redis nginx].reject { |name| Castellan::TestServers.available?(name) }
    abort "bench:processes needs #{needed.join(", ")}." if needed.any?
    @url = database
    @rows = { "written anew" => {}, "kept in Redis" => { "REDIS_URL" => Castellan::TestServers.redis_url } }
            .map { |title, env| [title, *measure(env)] }
    puts page
    File.write(File.join(__dir__, "processes.md"), page) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| @rows.each { |row| file.puts(JSON.generate(json(*row))) } } if ENV["BENCH_JSON"]
  end

  private

  def database
    Castellan::TestServers.postgres_url.tap do |url|
      Sequel.connect(url) do |database|
        Schema.new(database).create
        Seeds.new(database, multiplier: 1).insert
        Castellan::Versions::ExactVersions.new(database).install(%w[mail_logs categories companies])
      end
    end
  end

  # @return [Array(Float, Float)] requests per second with one and with two processes (medians)
  def measure(env)
    applications(env) do |one, two|
      addresses = [[one], [one, two]].map { |some| proxy(some) }
      compare(addresses)
      rates = Array.new(ROUNDS) { addresses.map { |address| rate(address) } }
      rates.transpose.map { |some| Castellan::Figures.median(some) }
    end
  end

  def applications(env)
    env = { "DATABASE_URL" => @url, **env }
    Castellan::TestServers.puma(APPLICATION, env: env) do |one|
      Castellan::TestServers.puma(APPLICATION, env: env) { |two| yield one, two }
    end
  end

  def proxy(urls)
    servers = urls.map { |url| "server 127.0.0.1:#{URI(url).port};" }.join(" ")
    Castellan::TestServers.nginx(URI(urls.first).port, PROXY, http: "upstream both { #{servers} keepalive 32; }").base_url
  end

  # Checks that both processes respond, with the same document.
  def compare(addresses)
    answers = addresses.map { |address| Array.new(20) { Net::HTTP.get_response(URI("#{address}#{PATH}")) } }
    abort "the second process does not answer" unless answers.map { |some| some.map { |one| one["process"] }.uniq.size } == [1, 2]
    documents = answers.flatten.map { |answer| JSON.parse(answer.body).except("links") }.uniq
    abort "the processes answer different documents" unless documents.one? && documents.first["data"].size == 20
  end

  def rate(address)
    summary = Castellan::LoadTest.run("#{address}#{PATH}", clients: CLIENTS, seconds: SECONDS, max_requests: 1_000_000)
    abort summary.to_text if summary.failed.positive?
    summary.rate
  end

  def page
    ["# One process and two", "",
     "Written by `rake bench:processes`: Ruby #{RUBY_VERSION}, #{Etc.nprocessors} processors; Puma with five threads a process behind " \
     "nginx, #{CLIENTS} clients, PostgreSQL and Redis, all on the same machine; #{ROUNDS} rounds in turns, medians.", "",
     "| 20 mail logs with count, category and company | one process, requests/s | two | times |", "|---|---|---|---|",
     *@rows.map { |title, one, two| "| #{title} | #{one.round} | #{two.round} | #{(two / one).round(2)} |" }, ""].join("\n")
  end

  def json(title, one, two)
    { benchmark: "processes", work: title, one_rate: one.round(1), two_rate: two.round(1) }
  end
end

ProcessesBenchmark.new.run
