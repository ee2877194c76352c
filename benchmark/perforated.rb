# frozen_string_literal: true

# Compares a prototype that caches each record of a page with rendering the page again from rows.
#
#   rake bench:perforated                 # writes benchmark/perforated.md
#   BENCH_SHORT=1 rake bench:perforated   # only checks that the documents are equal
#
# The prototype does the minimum for such a layer: a SELECT of the ids and `updated_at` of the page, a
# multi-get, and joining the records; if a tenth of them is stale, it reads and encodes their rows. It reads
# no versions of associations, so a real layer is slower.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "active_record"
require "castellan"
require "json"
require_relative "../test/support/servers"
require_relative "support/paired"
require_relative "support/way"

class PerforatedBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 1 : 21
  SIZES = [20, 100].freeze
  GOALS = { 0 => 3, 10 => 2 }.freeze # percentage of stale records => times as fast as rendering the page

  class Author < ActiveRecord::Base
    self.table_name = "perforated_authors"
  end

  class Post < ActiveRecord::Base
    self.table_name = "perforated_posts"
    belongs_to :author, class_name: "PerforatedBenchmark::Author"
  end

  class PostResource < Castellan::Resource
    model Post
    type "posts"
    attributes :title, :body, :updated_at
    attribute :author_name, from: "author.name"
  end

  def run
    missing = %i[postgres redis].reject { |name| Castellan::TestServers.available?(name) }
    abort "bench:perforated needs #{missing.join(", ")}." if missing.any?
    create
    stores = { "memory" => Castellan::Store::MemoryStore.new,
               "Redis" => Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, namespace: "perforated") }
    @tables = SIZES.to_h { |size| [size, measure(size, stores)] }
    puts report
    File.write(File.join(__dir__, "perforated.md"), report) unless SHORT
    File.write(ENV.fetch("BENCH_JSON"), lines.join, mode: "a") if ENV["BENCH_JSON"]
  end

  private

  def create
    ActiveRecord::Base.establish_connection(Castellan::TestServers.postgres_url)
    ActiveRecord::Base.logger = nil
    Post.connection.execute(<<~SQL)
      CREATE TABLE perforated_authors (id bigserial PRIMARY KEY, name text NOT NULL);
      CREATE TABLE perforated_posts (id bigserial PRIMARY KEY, author_id bigint NOT NULL, title text NOT NULL, body text NOT NULL,
                                     updated_at timestamp NOT NULL);
      INSERT INTO perforated_authors (name) SELECT 'Author ' || n FROM generate_series(1, 50) n;
      INSERT INTO perforated_posts (author_id, title, body, updated_at)
        SELECT n % 50 + 1, 'Post ' || n, repeat('text ', 60), timestamp '2026-01-01' + n * interval '1 minute'
        FROM generate_series(1, 1000) n;
    SQL
    Post.connection.execute("VACUUM ANALYZE perforated_posts")
  end

  def measure(size, stores)
    ways = [Benchmarks::Way.new("written anew", :page) { document(page(size)) }]
    stores.each do |name, store|
      GOALS.each_key do |stale|
        ways << Benchmarks::Way.new("#{name}, #{stale} % stale", :page) { joined(size, store, stale) }
      end
    end
    fill(size, stores)
    abort "bench:perforated: the documents differ" unless ways.map { |way| JSON.parse(way.call) }.uniq.one?
    Benchmarks::Paired.new(ways, rounds: ROUNDS, enough: SHORT ? 0 : 0.03)
  end

  def page(size) = Post.order(:id).limit(size)
  def document(scope) = PostResource.document(scope).to_json
  def records(bytes) = JSON.parse(bytes).fetch("data").map { |record| JSON.generate(record) }

  def fill(size, stores)
    fragments = records(document(page(size)))
    stores.each_value { |store| store.write_multi(keys(size).zip(fragments).to_h, ttl: 600) }
  end

  # With stale records, every tenth key counts as missing.
  def joined(size, store, stale)
    keys = keys(size)
    found = store.read_multi(keys)
    missing = stale.zero? ? [] : keys.each_slice(100 / stale).map(&:first)
    if missing.any?
      ids = missing.map { |key| key[/\d+/] }
      found = found.merge(missing.zip(records(document(Post.where(id: ids).order(:id)))).to_h)
    end
    %({"data":[#{keys.map { |key| found.fetch(key) }.join(",")}]})
  end

  def keys(size)
    Post.connection.select_rows("SELECT id, updated_at::text FROM perforated_posts ORDER BY id LIMIT #{size}").map { |id, at|
      "#{id}/#{at}"
    }
  end

  def lines
    @tables.map do |size, paired|
      "#{JSON.generate(bench: "perforated", records: size, ms: paired.names.to_h { |name| [name, paired.ms(name)] })}\n"
    end
  end

  def report
    <<~MARKDOWN
      # A layer that keeps each record: a prototype

      `rake bench:perforated`: Ruby #{RUBY_VERSION}, PostgreSQL and Redis on the same machine, medians of #{ROUNDS} rounds. The page is
      posts with the name of their author. The prototype reads ids and `updated_at`, the kept records with one multi-get, and joins
      them; it reads no versions of authors. Goal: #{GOALS[0]} times as fast as the page written anew, #{GOALS[10]} times with 10 % stale.

      | page | way | ms | times as fast as written anew | |
      |---|---|---|---|---|
      #{@tables.flat_map { |size, paired| rows(size, paired) }.join("\n")}
    MARKDOWN
  end

  def rows(size, paired)
    paired.names.map do |name|
      stale = name[/(\d+) %/, 1]
      times = paired.times(name, "written anew")
      "| #{size} posts | #{name} | #{paired.ms(name).round(2)} | #{times if stale} | #{times.verdict(GOALS[stale.to_i]) if stale} |"
    end
  end
end

PerforatedBenchmark.new.run
