# frozen_string_literal: true

require "test_helper"
require_relative "compared_answers"

# Viewers with other permissions, and stores that fail or lie: no answer of another viewer, no failed request. `bin/test --all`
# compares 40,000 answers to viewers, and `rake soak` 1,000,000.
class CacheFaultsTest < Minitest::Test
  include ComparedAnswers

  ROUNDS = Castellan::TestHelpers.all? ? 1_000 : 120
  ANSWERS = if SOAK then 1_000_000
            else Castellan::TestHelpers.all? ? 40_000 : 4_000
            end

  # A store that returns values of other keys, cut ones, and anything, now and then.
  class LyingStore
    def initialize(store, rng)
      @store = store
      @rng = rng
      @seen = []
    end

    def read_multi(keys)
      found = @store.read_multi(keys)
      @seen = (found.values + @seen).first(200)
      found.transform_values { |bytes| lie(bytes) }
    end

    def lie(bytes)
      case @rng.rand(6)
      when 0 then @seen.sample(random: @rng)
      when 1 then bytes.byteslice(0, @rng.rand(bytes.bytesize + 1))
      when 2 then @rng.bytes(@rng.rand(300))
      when 3 then bytes.empty? ? bytes : changed(bytes)
      else bytes
      end
    end

    def changed(bytes)
      at = @rng.rand(bytes.bytesize)
      bytes.dup.tap { |copy| copy.setbyte(at, copy.getbyte(at) ^ (1 << @rng.rand(8))) }
    end

    def write_multi(entries, **options) = @store.write_multi(entries, **options)
    def delete_multi(keys) = @store.delete_multi(keys)
    def increment(...) = @store.increment(...)
    def compare_and_delete(key, token) = @store.compare_and_delete(key, token)
    def supports?(feature) = @store.supports?(feature)
  end

  # A store that counts the operations that fail.
  class FailureCounter
    attr_reader :failures

    def initialize(store)
      @store = store
      @failures = 0
    end

    %i[read_multi write_multi delete_multi increment compare_and_delete supports?].each do |name|
      define_method(name) do |*arguments, **options|
        @store.public_send(name, *arguments, **options)
      rescue Castellan::StoreError
        @failures += 1
        raise
      end
    end
  end

  def setup
    needs :postgres, :redis
    @before = Castellan.keeper
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @rng = Random.new(Integer(ENV.fetch("SEED", "17")))
    @app = app
  end

  def teardown
    Castellan.keeper = @before
    @notified&.close
    @versions&.uninstall(Library::TABLES)
  end

  # pg_restore leaves the triggers enabled, but not ALWAYS: nothing is kept until they are installed again.
  def test_rows_that_pg_restore_brings_back_are_not_answered_stale
    Castellan.keeper = keeper(tiered)
    dump = File.join(Dir.mktmpdir, "articles")
    command(:pg_dump, "--format=custom", "--data-only", "--table=articles", "--file=#{dump}", library.url)
    library.run("DELETE FROM articles WHERE id < 5")
    2.times { assert_empty wrong_answers("1") }
    library.run("DELETE FROM articles")
    2.times { assert_empty wrong_answers("1") }
    command(:pg_restore, "--data-only", "--disable-triggers", "--dbname=#{library.url}", dump)
    2.times { assert_empty wrong_answers("1") }
    library.run("UPDATE articles SET title = 'After'")
    2.times { assert_empty wrong_answers("1") }
    @versions.install(%w[articles])
    library.run("UPDATE articles SET title = 'Installed again'")
    2.times { assert_empty wrong_answers("1") }
  ensure
    FileUtils.rm_rf(File.dirname(dump))
  end

  # One thread each over memory and over Redis, and two over both.
  def test_no_answer_of_a_million_is_that_of_another_viewer
    keepers = [Castellan::Store::MemoryStore.new, redis, tiered, tiered].map { |store| keeper(store, notified) }
    expected = people.to_h { |person| [person, body(person, nil)] }
    assert_equal people.size, expected.values.uniq.size
    keepers.each do |keeper|
      Castellan.keeper = keeper
      crossed = Array.new(2) { |number| Thread.new { crossed(expected, ANSWERS / keepers.size / 2, Random.new(number)) } }
      assert_equal 0, crossed.sum(&:value)
    end
  end

  def test_viewers_are_never_answered_as_others
    Castellan.keeper = keeper(tiered)
    expected = VIEWERS.to_h { |viewer| [viewer, fresh(viewer)] }
    assert_equal 3, expected.values.uniq.size
    crossed = Array.new(4) do |number|
      Thread.new do
        rng = Random.new(number)
        Array.new(ROUNDS) do
          viewer = VIEWERS.sample(random: rng)
          get(viewer, rng.rand < 0.5 ? "gzip" : nil) == expected[viewer]
        end.count(false)
      end
    end
    assert_equal 0, crossed.sum(&:value)
  end

  def test_a_store_that_lies_is_asked_in_vain
    Castellan.keeper = keeper(LyingStore.new(redis, @rng))
    assert_empty(Array.new(ROUNDS) { wrong_answers(VIEWERS.sample(random: @rng)) }.flatten)
  end

  { redis: -> { Castellan::TestServers.start_redis }, memcached: -> { Castellan::TestServers.start_memcached } }.each do |name, start|
    define_method("test_while_#{name}_is_stopped_or_killed_every_request_is_answered") do
      needs name
      server = start.call
      Castellan.keeper = keeper(store_of(name, server.port))
      assert_empty wrong_answers("1")
      Process.kill(:STOP, server.pid)
      3.times { assert_empty wrong_answers("2") }
      Process.kill(:CONT, server.pid)
      2.times { assert_empty wrong_answers("1") }
      server.stop
      3.times { assert_empty wrong_answers("3") }
    end

    define_method("test_documents_forms_and_fetches_wait_once_for_a_stopped_#{name}_and_log_one_line") do
      needs name
      server = start.call
      store = FailureCounter.new(store_of(name, server.port, timeout: 1)) # and is skipped for 10 s
      Castellan.keeper = keeper(store)
      3.times { assert_empty wrong_answers("1") }
      Process.kill(:STOP, server.pid)
      %w[1 2].each { |viewer| assert_empty wrong_answers(viewer) }
      assert_equal [1, 1], [store.failures, @lines.size], @lines.inspect
    end
  end

  def test_a_full_redis_is_a_miss
    server = Castellan::TestServers.start_redis("--maxmemory", "1", "--maxmemory-policy", "noeviction")
    Castellan.keeper = keeper(store_of(:redis, server.port, timeout: 5))
    3.times { assert_empty wrong_answers("1") }
    assert_includes @lines.first, "OOM"
    assert_equal 1, @lines.size, @lines.inspect
  end

  private

  def command(program, *arguments)
    assert system(Castellan::TestServers.tool(program.to_s), *arguments, %i[out err] => File::NULL), program
  end

  def store_of(name, port, timeout: 0.1)
    return Castellan::Store::MemcachedStore.new("127.0.0.1:#{port}", timeout: timeout) if name == :memcached

    Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{port}/0", timeout: timeout)
  end

  def notified
    @notified ||= Castellan::Versions::NotifiedVersions.new(library.models::Base).tap { |versions| versions.install(Library::TABLES) }
  end

  # Each sees the articles of one author, and has read some.
  def people = @people ||= Array.new(9) { |number| [(number % 3) + 1, number].freeze }.freeze

  def crossed(expected, count, rng)
    checked = {} # bytes, compressed ones too, whose viewer is known
    count.times.count do
      person = people.sample(random: rng)
      coding = "gzip" if rng.rand < 0.5
      bytes = body(person, coding)
      (checked[bytes] ||= coding ? Zlib.gunzip(bytes.b) : bytes) != expected[person]
    end
  end

  def body(person, coding)
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/marked", "SCRIPT_NAME" => "", "QUERY_STRING" => "include=author",
            "rack.input" => StringIO.new, "rack.url_scheme" => "http", "test.viewer" => person }
    env["HTTP_ACCEPT_ENCODING"] = coding if coding
    status, headers, body = @app.call(env)
    raise "#{status}: #{body.to_ary.join[0, 200]}" unless status == 200 && headers["content-encoding"] == (coding if Castellan.keeper)

    body.to_ary.join
  end
end
