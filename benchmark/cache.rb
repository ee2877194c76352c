# frozen_string_literal: true

# Compares Castellan's layers of caching inside an application with the same layers of Rails.
#
# Posts with authors and comments, PostgreSQL, Redis, ten clients; constant bytes from the same Puma show the
# limit.
#
#   rake bench:cache                 # writes benchmark/cache.md; about a quarter of an hour
#   BENCH_SHORT=1 rake bench:cache   # only checks that it works and that the responses are equal
#
# Responses are parsed and compared before the measurement. wrk, Puma, PostgreSQL and Redis share the machine.
require "etc"
require "json"
require "net/http"
require "active_record"
require "castellan"
require "castellan/load_test"
require_relative "../test/support/servers"
require_relative "cache/library"
require_relative "cache/cold_readers"
require_relative "cache/writers"
require_relative "support/interval"
require_relative "support/wrk"

class CacheBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 1 : Integer(ENV.fetch("BENCH_ROUNDS", "12"))
  SECONDS = 1
  ROUNDS_OF_A_SERVER = 4 # one process may be faster than the next
  CLIENTS = 10
  VIEWERS = 1_000
  # Puma 8.0 loses responses when it moves a connection between threads (`Contest::LOST`); with spare threads
  # this is rare.
  THREADS = CLIENTS + 2
  LOST = 5
  INCLUDE = "?include=author,comments"
  GZIP, PLAIN = %w[gzip identity].map { |coding| { "Accept-Encoding" => coding }.freeze }
  # Rails 7.2 turns YJIT on from Ruby 3.3.
  MODES = { "interpreter" => nil, **(defined?(RubyVM::YJIT) && !SHORT ? { "YJIT" => "--yjit" } : {}) }.freeze
  # As docs/caching.md advises: glibc otherwise returns the memory of responses to the system after each GC.
  MALLOC = { "MALLOC_ARENA_MAX" => "2", "MALLOC_TRIM_THRESHOLD_" => "67108864", "MALLOC_MMAP_THRESHOLD_" => "33554432" }.freeze
  APPLICATION = File.expand_path("cache/config.ru", __dir__)
  TABLES = %w[posts authors comments readings].freeze

  # Name, path, header fields, the peer, the goal as a share of the peer's rate (or a remark), and the commits
  # per second that another program makes meanwhile.
  Way = Struct.new(:title, :path, :headers, :peer, :goal, :commits)
  WAYS = [
    Way.new("constant bytes", "/constant#{INCLUDE}", {}), Way.new("constant gzip", "/constant-gzip#{INCLUDE}", GZIP),
    Way.new("constant 304", "/constant-304#{INCLUDE}", :etag),
    Way.new("constant bytes after a version's statement by hand", "/version#{INCLUDE}", {}, "constant bytes",
            "the floor of exact versions"),
    Way.new("Castellan, notified version", "/castellan/notified#{INCLUDE}", {}, "constant bytes", 0.85),
    Way.new("Castellan, exact version", "/castellan/exact#{INCLUDE}", {}, "constant bytes", 0.70),
    Way.new("Castellan, exact version, with 100 commits per second to another table", "/castellan/exact#{INCLUDE}", {},
            "constant bytes", "no goal", 100),
    Way.new("Castellan, written anew", "/castellan/anew#{INCLUDE}", {}),
    Way.new("Castellan, attribute of 1,000 viewers", "/viewers/personal#{INCLUDE}", {}, "Castellan, notified version", 0.60),
    Way.new("Castellan, the same with the table's version", "/viewers/versioned#{INCLUDE}", {}, "Castellan, notified version", 0.60),
    Way.new("Castellan, stored gzip", "/castellan/notified#{INCLUDE}", GZIP, "constant gzip", 0.90),
    Way.new("Castellan, gzip with an attribute of 1,000 viewers", "/viewers/personal#{INCLUDE}", GZIP),
    Way.new("Castellan, 304", "/castellan/notified#{INCLUDE}", :etag, "constant 304", 0.90),
    Way.new("Rails, to_json", "/rails/naive", {}), Way.new("Rails, document", "/rails/document", {}),
    Way.new("Rails, document through Castellan.cache", "/rails/fetched", {}),
    Way.new("Rails, fragment with an attribute of 1,000 viewers (the story)", "/rails/fragment", {}),
    Way.new("Rails, the same in one query", "/rails/fragment_batched", {}),
    Way.new("Rails, document and Rack::Deflater", "/rails-gzip/document", GZIP), Way.new("Rails, 304", "/rails/not_modified", :etag)
  ].freeze
  BY_DEFAULT = WAYS.select { |way| way.title.match?(/\Aconstant bytes\z|notified|table's version/) }.freeze
  BESIDE = { "Castellan, attribute of 1,000 viewers" => ["Rails, fragment with an attribute of 1,000 viewers (the story)", 20] }.freeze

  def run
    needed = %i[postgres redis].reject { |name| Castellan::TestServers.available?(name) }
    abort "bench:cache needs #{needed.join(", ")}." if needed.any?
    @url = database
    env = { "DATABASE_URL" => @url, "REDIS_URL" => Castellan::TestServers.redis_url, "RAILS_ENV" => "production", "RAILS_LOG_LEVEL" => "fatal" }
    @tables = MODES.transform_values do |options|
      all_rates({ **env, **MALLOC, "RUBYOPT" => [ENV["RUBYOPT"], options].compact.join(" ") }, WAYS)
    end
    @by_default = all_rates(env, BY_DEFAULT)
    @lag = lag
    @splice = splice
    @cold = cold
    @memory = memory
    @writes = writes
    puts page
    File.write(File.join(__dir__, "cache.md"), page) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  end

  private

  def database
    Castellan::TestServers.postgres_url.tap do |url|
      ActiveRecord::Base.establish_connection(url)
      ActiveRecord::Base.connection.execute(Post.setup)
      Castellan::Versions::ExactVersions.new(ActiveRecord::Base).install(TABLES, notify: true)
    end
  end

  # @return [Hash{String => Array<Float>}] requests per second in each round, by title
  def all_rates(env, ways)
    rates = Hash.new { |all, title| all[title] = [] }
    ROUNDS.times.each_slice(ROUNDS_OF_A_SERVER) do |rounds|
      Castellan::TestServers.puma(APPLICATION, env: env, threads: THREADS) { |base_url| measure(base_url, rounds.size, ways, rates) }
    end
    rates
  end

  # Ways that are compared follow one another, because a machine drifts. The process is warmed up first, by all ways:
  # each viewer has the values that are cached, as far as they are.
  def measure(base_url, rounds, ways, rates)
    compare(base_url)
    headers = WAYS.to_h { |way|
      [way.title, way.headers == :etag ? { "If-None-Match" => get(base_url, way.path, PLAIN)["etag"] } : way.headers]
    }
    WAYS.each { |way| warm_up(base_url, way, headers[way.title]) }
    families = ways.group_by { |way| root(way) }.values
    rounds.times { families.shuffle.flat_map(&:shuffle).each { |way| rates[way.title] << rate(base_url, way, headers[way.title]) } }
  end

  def warm_up(base_url, way, headers)
    return rate(base_url, way, headers) unless way.path.start_with?("/viewers/") && !SHORT

    Castellan::LoadTest.run("#{base_url}#{way.path}", clients: CLIENTS, seconds: 20, max_requests: 2 * VIEWERS, headers: headers)
  end

  # @return [Way] the peer of its peers
  def root(way) = way.peer ? root(WAYS.find { |other| other.title == way.peer }) : way

  def get(base_url, path, headers = {}) = Net::HTTP.get_response(URI("#{base_url}#{path}"), headers)

  def compare(base_url)
    documents = WAYS.reject { |way| way.title.end_with?("304") || way.title.start_with?("constant") }.to_h do |way|
      Array.new(3) { get(base_url, way.path) }
      answer = get(base_url, way.path, PLAIN)
      abort "#{way.title}: #{answer.code} #{answer.body[0, 200]}" unless answer.code == "200"
      [way.title, plain(JSON.parse(answer.body))]
    end
    other = documents.find { |_, document| document != documents.values.first }
    abort "#{other.first} is another document than #{documents.keys.first}" if other
    abort "no page of 60" unless documents.values.first.size == 60
    compare_constants(base_url)
    %w[/constant-304 /castellan/notified].each do |path|
      status = get(base_url, "#{path}#{INCLUDE}", "If-None-Match" => get(base_url, "#{path}#{INCLUDE}", PLAIN)["etag"], **PLAIN).code
      abort "#{path}: #{status} instead of 304" unless status == "304"
    end
  end

  # The constant answers have the bytes of Castellan's.
  def compare_constants(base_url)
    { "/constant" => PLAIN, "/version" => PLAIN, "/constant-gzip" => GZIP }.each do |path, headers|
      sent, constant = ["/castellan/notified", path].map { |each| get(base_url, "#{each}#{INCLUDE}", headers) }
      abort "#{path} has other bytes than Castellan" unless sent.body == constant.body
      other = (sent.to_hash.keys | constant.to_hash.keys).find { |name| sent[name].to_s.size != constant[name].to_s.size }
      abort "#{path} has another #{other} than Castellan" if other
    end
  end

  # Without the viewer's attribute and everything around the list. Ids in nested JSON may be strings or
  # numbers.
  def plain(document)
    list = document.is_a?(Hash) ? document.fetch("data") : document
    list.map { |post| JSON.parse(JSON.generate(post.except("read").sort.to_h).gsub(/"id":"(\d+)"/, '"id":\1')) }
  end

  def rate(base_url, way, headers)
    writer = way.commits && fork { commit_always(way.commits) }
    Benchmarks::Wrk.rate("#{base_url}#{way.path}", clients: CLIENTS, seconds: SECONDS, headers: headers, lost: LOST)
  ensure
    Process.wait(writer) if writer && Process.kill(:KILL, writer)
  end

  def commit_always(per_second)
    connection = PG.connect(@url)
    connection.exec("SET client_min_messages = warning; CREATE TABLE IF NOT EXISTS others (n int)")
    connection.exec("TRUNCATE others; INSERT INTO others VALUES (0)")
    loop do
      connection.exec("UPDATE others SET n = n + 1")
      sleep 1.0 / per_second
    end
  end

  # @return [Float] microseconds to write one value into the gzipped page
  def splice
    body = NotifiedPostResource.render(query: { "include" => "author,comments" }, keeper: nil).b
    body = body.byteslice(0, 52_000)
    pieces = Castellan::Cache::SplicedGzip.compress([body.byteslice(0, 26_000), body.byteslice(26_000, 26_000)])
    calls = SHORT ? 10 : 2_000
    rounds = Array.new(SHORT ? 1 : 15) do
      started_ns = Castellan::Clock.monotonic_ns
      calls.times { Castellan::Cache::SplicedGzip.fill(pieces.bodies, pieces.sums, ["true"]) }
      (Castellan::Clock.monotonic_ns - started_ns) / 1_000.0 / calls
    end
    median(rounds)
  end

  # @return [Array<Float>] milliseconds from a commit until a process was notified of it
  def lag
    versions = Castellan::Versions::NotifiedVersions.new(ActiveRecord::Base, recheck: 60)
    dependencies = [Castellan::Versions::Dependency.new("authors")]
    sleep 0.05 until versions.listening?
    other = PG.connect(@url)
    Array.new(SHORT ? 3 : 200) do
      before = versions.current(dependencies)
      other.exec("UPDATE authors SET name = name WHERE id = 1")
      committed = Castellan::Clock.monotonic_ns
      Thread.pass until versions.current(dependencies) != before
      (Castellan::Clock.monotonic_ns - committed) / 1_000_000.0
    end.sort
  ensure
    versions&.close
    other&.close
  end

  # @return [Hash{String => Hash{Symbol => Float}}] commits per second, where commits wait for the disk and where they do not
  def writes
    { "PostgreSQL's own settings" => Castellan::TestServers.durable_postgres_url, "without fsync" => @url }.transform_values do |url|
      ActiveRecord::Base.establish_connection(url)
      ActiveRecord::Base.connection.execute(Post.setup) unless url == @url
      Writers.new(url, seconds: SECONDS).rates(rounds: SHORT ? 1 : 5)
    end
  end

  # @return [Array(Integer, Integer)] how often 64 readers compute a page, with Castellan and with Rails
  def cold
    url = Castellan::TestServers.redis_url
    castellan = ColdReaders.new(url).count do |readers|
      store = Castellan::Store::RedisStore.new(url: url, size: ColdReaders::THREADS, timeout: 10)
      layer = Castellan::Cache::DocumentLayer.new(store: store, lease_ttl: 60)
      -> { layer.fetch("cold") { readers.compute } }
    end
    rails = ColdReaders.new(url).count do |readers|
      cache = ActiveSupport::Cache::RedisCacheStore.new(url: url, namespace: "rails")
      -> { cache.fetch("cold", race_condition_ttl: 10, expires_in: 60) { readers.compute } }
    end
    [castellan, rails]
  end

  # @return [Hash{Integer => Array(Float, Float)}] bytes of resident memory for each byte in a full MemoryStore, and in a Hash
  #   of the same keys and values, by the size of the values
  def memory
    [1_024, 4_096, 52_000].to_h do |size|
      [size, [Castellan::Store::MemoryStore.new(max_bytesize: 1 << 40), {}].map { |store| bytes_for_each_byte(store, size) }]
    end
  end

  def bytes_for_each_byte(store, size)
    reader, writer = IO.pipe
    pid = fork do
      GC.start
      before = resident
      count = (SHORT ? 2 : 200) * 1_000_000 / size
      count.times { |n| keep(store, Castellan::Cache::Key.for([n]), Random.bytes(size).freeze) }
      GC.start
      writer.write((resident - before) / (count * size).to_f)
      writer.close
      exit!(0)
    end
    writer.close
    reader.read.to_f.tap { Process.wait(pid) }
  end

  def keep(store, key, bytes)
    store.is_a?(Hash) ? store[key] = bytes : store.write_multi({ key => bytes })
  end

  def resident = Integer(File.read("/proc/self/statm").split[1]) * Etc.sysconf(Etc::SC_PAGESIZE)

  # @return [Array<Float>] of each round
  def shares(rates, title, peer) = rates[title].zip(rates[peer]).map { |rate, other| rate / other }

  def median(values) = Castellan::Figures.median(values)

  def rows
    @tables.flat_map do |mode, rates|
      WAYS.map do |way|
        goal = way.goal if way.goal.is_a?(Float)
        { benchmark: "cache", mode: mode, work: way.title, rate: median(rates[way.title]).round(1), goal: goal, of: way.peer }.compact
      end
    end
  end

  def page
    ["# Layers of caching", "",
     "Written by `rake bench:cache`: Ruby #{RUBY_VERSION}, Rails #{ActiveRecord::VERSION::STRING}, #{Etc.nprocessors} processors. One " \
     "Puma process with #{THREADS} threads, #{CLIENTS} clients of wrk, PostgreSQL and Redis on the same machine; 60 posts with " \
     "authors and comments. Castellan keeps documents in memory before Redis and answers before Rails' router; Rails' cache is a " \
     "RedisCacheStore. Puma has #{MALLOC.map { |name, value| "`#{name}=#{value}`" }.join(", ")}, as " \
     "docs/caching.md advises. Answers are compared before anything is timed; #{ROUNDS} rounds in random order, and a new Puma every " \
     "#{ROUNDS_OF_A_SERVER} rounds. Medians; for shares " \
     "with their 95 % interval: a goal inside of it is not shown.", "",
     *@tables.flat_map { |mode, rates| table(mode, rates) }, *further, ""].join("\n")
  end

  def table(mode, rates)
    ["## #{mode == "YJIT" ? "With YJIT, which Rails 7.2 turns on from Ruby 3.3" : "With the interpreter"}", "",
     "| | requests/s | share | of | goal |", "|---|---|---|---|---|", *WAYS.map { |way| line(rates, way) }, "", *beside(rates), ""]
  end

  def line(rates, way)
    rate = median(rates[way.title]).round
    return "| #{way.title} | #{rate} | | | |" unless way.peer

    shares = shares(rates, way.title, way.peer)
    interval = Benchmarks::Interval.of(shares).map { |share| (share * 100).round }.join("..")
    "| #{way.title} | #{rate} | #{(median(shares) * 100).round} % (#{interval}) | #{way.peer} | #{remark(way.goal, shares)} |"
  end

  def remark(goal, shares)
    goal.is_a?(Float) ? "≥ #{(goal * 100).round} %: #{verdict(goal, shares)}" : goal
  end

  def verdict(goal, shares)
    low, high = Benchmarks::Interval.of(shares)
    return "not shown" if goal.between?(low, high)

    low > goal ? "reached" : "**not reached**"
  end

  def beside(rates)
    BESIDE.map do |title, (peer, goal)|
      shares = shares(rates, title, peer)
      "- #{title}: #{median(shares).round(1)} × #{peer} (goal #{goal} ×: #{verdict(goal, shares)})"
    end
  end

  def further
    middle = @lag[@lag.size / 2]
    late = @lag[(@lag.size * 0.99).floor]
    ["## Further figures", "",
     "- With the settings of glibc (interpreter): #{by_default}",
     "- A viewer's value in gzip of 52 kB: #{@splice.round(1)} µs (goal 10 µs: #{@splice <= 10 ? "reached" : "**not reached**"})",
     "- A notified version: #{middle.round(2)} ms from a commit until another process has noticed it (median; 99 %: #{late.round(2)} ms)",
     "- 64 simultaneous readers in 4 processes of what nobody has: #{@cold.first} computation (goal 1), with Rails' " \
     "RedisCacheStore #{@cold.last}",
     "- Resident memory for each byte in a MemoryStore (goal 1.15): " \
     "#{@memory.map { |size, (store, hash)| "#{store.round(2)} with values of #{size} bytes (in a Hash #{hash.round(2)})" }.join(", ")}",
     "", "## Eight clients that write one table", "", *written]
  end

  def by_default
    BY_DEFAULT.select(&:peer).map { |way|
      "#{way.title}, #{(median(shares(@by_default, way.title, way.peer)) * 100).round} % of #{way.peer}"
    }.join("; ")
  end

  TITLES = { floor: "floor: a trigger by hand that inserts a row", exact: "`castellan_versions`",
             notifying_floor: "floor: a trigger by hand that inserts a row and notifies", notifying: "`castellan_versions notify: true`",
             columns: "`castellan_versions by:` two columns" }.freeze
  private_constant :TITLES

  # `cache :notified` needs no notification with `poll:`, so the goal is that of the counter.
  def written
    lines = TITLES.map do |kind, title|
      cells = @writes.each_value.map { |rates| "#{(100 - (rates[kind] / rates[:without] * 100)).round} % less" }
      "| #{title}#{" (goal: at most 20 % less)" if kind == :exact} | #{cells.join(" | ")} |"
    end
    ["| commits per second | #{@writes.keys.join(" | ")} |", "|---|---|---|",
     "| without triggers | #{@writes.each_value.map { |rates| rates[:without].round }.join(" | ")} |", *lines]
  end
end

CacheBenchmark.new.run
