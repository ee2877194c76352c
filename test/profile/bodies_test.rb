# frozen_string_literal: true

require "test_helper"
require "profile/profile_world"
require "socket"
require "timeout"

# Bodies that are made while they are sent, sockets that are taken over, threads and processes: profiles stay whole and separate.
class ProfileBodiesTest < Minitest::Test
  include ProfileWorld

  # Yields one book after another, each read when it is asked for.
  class Lazy
    attr_reader :closed

    def initialize(database) = @database = database

    def each
      (1..ProfileWorld::BOOKS).each { |id| yield @database[:books].first(id: id)[:title] }
    end

    def close
      @closed = @database[:authors].count
    end
  end

  def call(path = "/books") = @middleware.call(Rack::MockRequest.env_for(path))

  def test_queries_of_a_lazy_body_are_on_the_page_but_not_in_the_header
    body = Lazy.new(sequel)
    profiled(->(_env) { [200, {}, body] })
    _status, headers, sent = call
    assert_match(/desc="0 queries"/, headers["server-timing"])
    assert_empty @middleware.results.latest
    assert_equal "book 0", sent.enum_for(:each).first(1).first
    sent.each { |chunk| chunk }
    assert_empty @middleware.results.latest
    sent.close
    assert_equal [BOOKS, 2 + BOOKS], [body.closed, result.queries.size]
    assert_equal BOOKS, result.findings.first[:count] - 1
    sent.close
    assert_equal 1, results.size
  end

  def test_work_of_the_server_between_two_chunks_is_not_recorded
    profiled(->(_env) { [200, {}, Lazy.new(sequel)] })
    body = call.last
    chunks = body.each # in a fiber of its own, which is left where it is
    chunks.next
    assert_nil Castellan::Recording.current
    Author.first
    chunks.next
    body.close
    assert_equal [2, 0], %w[books authors].map { |table| result.queries.count { |query| query[:sql].include?(table) } }
  end

  def test_a_lazy_body_that_raises_is_profiled_and_raises
    profiled(->(_env) { [200, {}, Enumerator.new { |yielder| yielder << Book.first.title and raise "gone" }] })
    _, _, sent = call
    assert_equal("gone", assert_raises(RuntimeError) { sent.each { |chunk| chunk } }.message)
    sent.close
    assert_equal [1, 6], [result.queries.size, result.response_bytes]
    assert_match(/\ARuntimeError at test.profile.bodies_test\.rb:#{__LINE__ - 5}\z/, result.exception)
    assert_nil Castellan::Recording.current
  end

  def test_an_error_of_the_server_is_not_an_exception_of_the_application
    profiled(->(_env) { [200, {}, Enumerator.new { |yielder| yielder << "a" }] })
    _, _, sent = call
    gone = ->(_chunk) { raise Errno::EPIPE }
    assert_raises(Errno::EPIPE) { sent.each(&gone) }
    sent.close
    assert_nil result.exception
  end

  # What Rails answers: an Array in a wrapper.
  class Whole
    def initialize(parts, &closed) = (@parts, @closed = parts, closed)
    def each(&block) = @parts.each(&block)
    def to_ary = @parts.tap { close }
    def close = @closed&.call
  end

  def test_an_array_body_is_passed_on_unchanged
    closed = 0
    profiled(->(_env) { [200, {}, Whole.new(%w[a bc]) { closed += 1 }] })
    _, _, sent = call
    assert_equal [%w[a bc], 1, 3], [sent.to_ary, closed, result.response_bytes]
    refute_respond_to sent, :call
    refute_respond_to sent, :to_path
  end

  def test_with_rack_response_finished_the_profile_is_made_after_the_response
    profiled(->(_env) { [200, {}, ["a"]] })
    env = Rack::MockRequest.env_for("/", "rack.response_finished" => [])
    @middleware.call(env)
    assert_empty @middleware.results.latest
    env["rack.response_finished"].each { |finished| finished.call(env, 200, {}, nil) }
    assert_equal 1, results.size
  end

  def test_a_file_stays_a_file
    body = Struct.new(:to_path) { def each = yield(File.read(to_path)) }.new(__FILE__)
    profiled(->(_env) { [200, {}, body] })
    _, _, sent = call
    assert_equal __FILE__, sent.to_path
    sent.close
    assert_equal File.size(__FILE__), result.response_bytes
  end

  def test_a_body_that_writes_to_a_stream
    stream = StringIO.new
    profiled(->(_env) { [200, {}, ->(io) { io.write(Book.first.title) }] })
    _, _, sent = call
    sent.call(stream)
    assert_equal ["book 0", 1, nil], [stream.string, result.queries.size, result.response_bytes]
    assert_match(/its size is not known/, result.notes.first)
  end

  def test_a_hijacked_socket_ends_the_profile
    profiled(->(env) { Book.first && env["rack.hijack"].call && [-1, {}, []] })
    env = Rack::MockRequest.env_for("/", "rack.hijack" => -> { StringIO.new })
    assert_equal [-1, []], @middleware.call(env).values_at(0, 2)
    assert_match(/the socket was taken over/, result.notes.first)
    assert_nil result.status, "nobody knows what was answered"
    writer = ->(_io) {}
    profiled(->(_env) { [101, { "rack.hijack" => writer }, []] })
    assert_same writer, call[1]["rack.hijack"]
    assert_equal [101, nil], [result.status, result.response_bytes]
    refute Castellan::Instrument.subscribed?
  end

  def test_sixteen_threads_have_sixteen_complete_profiles
    entered = Queue.new
    go = Queue.new
    profiled(lambda do |env|
      entered << true
      go.pop
      number = env["QUERY_STRING"].to_i
      number.times { |id| Book.where(id: id).pluck(:title) }
      [200, {}, [number.to_s]]
    end)
    threads = (1..16).map { |number| Thread.new { get("/books?#{number}").body } }
    16.times { entered.pop }
    16.times { go << true }
    assert_equal (1..16).map(&:to_s), threads.map(&:value)
    assert_equal((1..16).to_h { |number| [number.to_s, number] }, results.to_h { |one| [one.query, one.queries.size] })
    assert(results.all? { |one| one.objects[:overlapping].between?(0, 15) })
    assert_operator results.sum { |one| one.objects[:overlapping] }, :>, 0
  end

  def test_a_page_that_is_not_shown_overlaps_as_any_request_does
    inside = Queue.new
    go = Queue.new
    app = lambda do |env|
      env["PATH_INFO"] == "/slow" && inside.push(true) && go.pop
      [404, {}, []]
    end
    profiled(app, authorize: ->(env) { env["PATH_INFO"] == "/slow" })
    slow = Thread.new { get("/slow") }
    inside.pop
    get("/castellan")
    go << true
    slow.value
    assert_equal ["process", 1], result.objects.values_at(:scope, :overlapping)
    go << true
    get("/slow")
    assert_equal 0, result.objects[:overlapping]
  end

  def test_a_request_that_begins_while_the_findings_are_written_does_not_overlap
    traffic = Castellan::Profile::Traffic.new
    session = traffic.during { Castellan::Profile::Session.new(traffic: traffic).tap { |one| one.record { Book.count } } }
    session.close
    traffic.during { nil }
    assert_equal 0, session.finish(path: "/books", status: 200).objects[:overlapping]
  end

  def test_a_forked_process_has_its_own_profiles
    store = Castellan::Store::DirectoryStore.new(File.join(@directory, "profiles"))
    profiled(store: store) { careless.size }
    get("/parent")
    forget(Base)
    forget(@sequel)
    pid = fork do
      Base.establish_connection(adapter: "sqlite3", database: @file)
      get("/child")
      exit!(0)
    end
    Process.wait(pid)
    assert_equal [["/child", 13], ["/parent", 13]], results.map { |one| [one.path, one.queries.size] }
  end

  def test_fifty_thousand_queries_are_counted_and_cut_off
    name = "select 1 as one from books where id = ?"
    profiled { 50_000.times { |id| Castellan::Recording.current.query(name, "Sequel", id, 1, false, 1, [id]) } && "ok" }
    assert_equal "ok", get("/").body
    assert_equal [2_000, 48_000, 50_000, 50_000],
                 [result.queries.size, result.truncated[:queries], result.totals[:queries], result.totals[:rows]]
    assert_match(/48000 queries after the first 2000 are counted and not listed/, result.notes.first)
  end

  def test_a_response_of_two_hundred_megabytes_ends_the_profile_and_not_the_response
    chunk = "x" * 1_000_000
    body = Enumerator.new { |yielder| 200.times { yielder << chunk } }
    profiled(->(_env) { [200, {}, body] })
    sent = 0
    _, _, given = call
    given.each { |piece| sent += piece.bytesize }
    given.close
    assert_equal 200_000_000, sent
    assert result.truncated[:bytes]
    assert_match(/longer than 100 MB/, result.notes.first)
    assert_equal 1, results.size
  end

  # A store whose every write fails in another way.
  class Failing < Castellan::Store::NullStore
    def initialize(error)
      super()
      @error = error
    end

    def write_multi(*, **) = raise(@error)
    def increment(*) = raise(@error)
  end

  def test_a_store_that_fails_changes_nothing
    [Castellan::StoreError.new("gone"), IOError.new("closed"), NoMethodError.new("a bug"), NotImplementedError.new("none")].each do |error|
      profiled(store: Failing.new(error)) { "ok" }
      response = get("/")
      assert_equal [200, "ok"], [response.status, response.body]
      assert_includes @log.string, error.message.lines.first.chomp
    end
  end

  def test_an_invalid_response_is_passed_to_the_server
    [nil, [200, {}], [200, nil, ["x"]], [200, [%w[a b]], []], [nil, nil, nil], 5].each do |answer|
      profiled(->(_env) { answer })
      assert_same answer, @middleware.call(Rack::MockRequest.env_for("/?profile=cpu")), answer.inspect
      assert_nil results.fetch(0).response_bytes
      refute Castellan::Instrument.subscribed?
    end
  end

  def test_an_error_of_the_page_is_logged_and_displayed
    profiled { "ok" }
    get("/")
    Castellan::Profile::Page::IndexView.stub(:new, ->(*) { raise "a bug" }) { assert_equal 500, get("/castellan").status }
    assert_includes @log.string, "page of profiles failed"
  end

  def test_a_recorder_that_fails_changes_nothing
    profiled { Book.find_by_sql("select title from books where 1 = 1 order by id limit 1").first.title } # a text that nobody has read
    Castellan::Fingerprint.stub(:of, ->(_sql) { raise "a bug" }) do
      assert_equal "book 0", get("/").body
    end
    assert_includes result.notes, "the recording stopped: RuntimeError"
    assert_equal 200, result.status
  end

  def test_a_profile_that_cannot_begin_changes_nothing_and_leaves_nothing
    profiled { "ok" }
    Castellan::Recording.stub(:new, ->(*) { raise "a bug" }) { assert_equal "ok", get("/?profile=memory").body }
    assert_includes @log.string, "could not begin"
    refute Castellan::Instrument.subscribed?
    get("/?profile=memory")
    refute_nil result.memory
  end

  def test_findings_that_fail_change_nothing
    profiled { careless.size }
    Castellan::Detect::Verdict.stub(:new, ->(*) { raise "a bug" }) { assert_equal BOOKS.to_s, get("/").body }
    assert_includes @log.string, "a bug"
    refute Castellan::Instrument.subscribed?
  end
end
