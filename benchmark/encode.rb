# frozen_string_literal: true

# Compares the encoders, on rows in memory, with `JSON.generate` of an equal hash.
#
#   rake bench:encode                 # writes benchmark/encode.md
#   BENCH_SHORT=1 rake bench:encode   # only checks that it works
#
# Building the hash is not counted. Compares the documents first. The ways take turns, so that the load of the
# machine affects all of them; a figure is the median of its rounds. Excludes the time of the database: for
# whole requests, see benchmark/serialize.md.
require "castellan"
require "json"
require_relative "../test/serialize/drafts"
require_relative "../test/support/servers"

class EncodeBenchmark
  include Castellan::Drafts

  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 3 : 41
  Ruby = Castellan::Serialize::RubyEncoder

  HOLES = 100

  USERS = "SELECT i AS id, 'user' || i || '@example.com' AS email, 'First ' || i AS first_name, 'Last ' || i AS last_name, " \
          "i * 3 AS employee_id, timestamp '2024-01-01' + i * interval '1 hour' AS last_login_at FROM generate_series(1, %d) i"
  LINKS = "SELECT 1 + i %% %d, 1 + i %% %d FROM generate_series(1, %d) i"
  NAMED = "SELECT i AS id, 'name ' || i AS title FROM generate_series(1, %d) i"
  POSTS = "SELECT i AS id, 'Title of ' || i AS title, repeat('body of a post ', 40) AS body, 1 + i %% 10 AS author_id " \
          "FROM generate_series(1, %d) i"
  COMMENTS = "SELECT i AS id, 1 + i %% 100 AS post_id, repeat('comment ', 15) AS body FROM generate_series(1, %d) i"

  def run
    works.each { |name, root, format| measure(name, root, format) }
    compare("100 holes of a kept document of #{HOLES} records, the batch not counted", filling)
    puts report
    File.write(File.join(__dir__, "encode.md"), report) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| @rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  end

  def initialize
    @rows = []
    @connection = connect
  end

  private

  def connect
    require "pg"
    PG.connect(Castellan::TestServers.postgres_url) if Castellan::TestServers.available?(:postgres)
  rescue LoadError
    nil
  end

  def works
    return [["1,000 users with roles and groups, JSON:API, arrays", users(method(:made)), :json_api]] unless @connection

    { "arrays" => ->(sql) { select(sql).values }, "PG::Result" => ->(sql) { select(sql) } }.flat_map do |kind, read|
      [["1,000 users with roles and groups, JSON:API, #{kind}", users(read), :json_api],
       ["100 posts with author and 8 comments each, nested, #{kind}", posts(read), :nested]]
    end
  end

  def select(sql) = @connection.exec(sql)

  # Without PostgreSQL, builds rows like its arrays.
  def made(sql)
    count = sql[/\(1, (\d+)\) i/, 1].to_i
    Array.new(count) do |number|
      id = (number + 1).to_s
      next [id, "user#{id}@example.com", "First #{id}", "Last #{id}", id, "2024-01-01 10:00:00"] if sql.include?("email")

      sql.include?("title") ? [id, "name #{id}"] : [(1 + number % 1000).to_s, (1 + number % 20).to_s]
    end
  end

  def users(read)
    related = %w[roles groups].to_h { |type| [type, draft(type, { id: :integer, title: :text }, read.call(format(NAMED, 20)))] }
    edges = related.map do |type, to|
      edge(type.to_sym, Pairs.new(read.call(format(LINKS, 1000, 20, 3000)), 0, 1), type:, many: true, to:)
    end
    draft("users", { id: :integer, email: :text, first_name: :text, last_name: :text, employee_id: :integer, last_login_at: :datetime },
          read.call(format(USERS, 1000)), edges:)
  end

  def posts(read)
    authors = draft("authors", { id: :integer, title: :text }, read.call(format(NAMED, 10)))
    rows = read.call(format(COMMENTS, 800))
    comments = draft("comments", { id: :integer, post_id: :integer, body: :text }, rows)
    draft("posts", { id: :integer, title: :text, body: :text }, read.call(format(POSTS, 100)),
          edges: [edge(:author, InColumn.new(3), type: "authors", to: authors),
                  edge(:comments, Pairs.new(rows, 1, 0), type: "comments", many: true, to: comments)])
  end

  def measure(work, root, format)
    plan, row_set = build(root, format:)
    compare(work, ways(row_set, Castellan::Serialize::Template.new(plan)))
  end

  def compare(work, ways)
    bodies = ways.transform_values(&:call)
    differing = bodies.keys.reject { |way| bodies[way] == bodies.values.first }
    abort "#{work}: the output of #{differing.join(", ")} differs" if differing.any?
    times = timed(ways)
    ways.each { |way, call| note(work, way, times[way], objects(call), bodies[way].bytesize) }
  end

  # Uses a batch that is loaded before, so that loading it is not counted.
  def filling
    body, holes = kept
    blanks = Castellan::Serialize::Output.new(body, holes).blanks
    read = (1..HOLES).step(3).to_a
    batches = [->(_ids, _viewer) { read }]
    { "Castellan fills the holes" => -> { blanks.fill(body, blanks.values(batches, nil)) },
      "JSON.parse, read set in each hash, JSON.generate" => lambda {
        set = read.to_h { |id| [id.to_s, true] }
        JSON.generate(JSON.parse(body.gsub('"read":}', '"read":null}')).each { |record| record["read"] = set.key?(record["id"]) })
      } }
  end

  # @return [Array(String, Array)] the body, and the placeholders that the encoder recorded
  def kept
    holes = []
    records = (1..HOLES).map { |id| %({"id":"#{id}","title":"Letter #{id} of the year","body":"#{"Dear reader, " * 12}","read":) }
    body = records.each_with_object(+"[") do |record, bytes|
      bytes << "," if bytes.size > 1
      bytes << record
      holes.push(bytes.bytesize, 0, (holes.size / 3 + 1).to_s)
      bytes << "}"
    end
    [body << "]", holes]
  end

  def ways(row_set, template)
    tree = JSON.parse(Ruby.encode(row_set, template).body)
    ways = { "Ruby encoder" => -> { Ruby.encode(row_set, template).body }, "JSON.generate of the hash tree" => -> { JSON.generate(tree) } }
    return ways unless Castellan::Serialize.native?

    { "C encoder" => -> { Castellan::Serialize::NativeEncoder.encode(row_set, template).body } }.merge(ways)
  end

  def timed(ways)
    times = ways.transform_values { [] }
    ROUNDS.times do
      ways.each do |way, call|
        GC.start
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        call.call
        times[way] << Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
      end
    end
    times.transform_values { |list| list.sort[list.size / 2] }
  end

  def objects(call)
    GC.disable
    before = GC.stat(:total_allocated_objects)
    call.call
    GC.stat(:total_allocated_objects) - before
  ensure
    GC.enable
  end

  def note(work, way, seconds, objects, bytes)
    @rows << { benchmark: "encode", work:, way:, ms: (seconds * 1000).round(3), objects:, bytes: }
  end

  def report
    lines = @rows.group_by { |row| row[:work] }.flat_map { |work, rows| ["", "## #{work}", "", *lines_of(rows)] }
    ["# Writing documents from rows in memory", "", "Written by `rake bench:encode`: #{environment}.",
     "Median of #{ROUNDS} rounds in turns; outputs compared first.",
     *lines, ""].join("\n")
  end

  def lines_of(rows)
    fastest = rows.map { |row| row[:ms] }.min
    ["| way | ms | times the fastest | objects | bytes |", "|---|---|---|---|---|",
     *rows.map { |row| "| #{row[:way]} | #{row[:ms]} | #{(row[:ms] / fastest).round(1)} | #{row[:objects]} | #{row[:bytes]} |" }]
  end

  def environment
    yjit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "YJIT" : "no YJIT"
    database = @connection ? "pg #{PG::VERSION}" : "no PostgreSQL"
    "Ruby #{RUBY_VERSION} (#{yjit}), json #{JSON::VERSION}, #{database}, #{Etc.nprocessors} processors"
  end
end

require "etc"
EncodeBenchmark.new.run
