# frozen_string_literal: true

require "test_helper"
require "open3"
require "securerandom"
require "sequel"
require "tmpdir"

# `castellan cache explain`, run as a program.
class CacheCommandTest < Minitest::Test
  APP = <<~RUBY
    require "sequel"
    require "castellan"
    DB = Sequel.sqlite("app.sqlite3")
    DB.create_table?(:posts) { primary_key :id; String :title }
    DB[:posts].insert(title: "One") if DB[:posts].empty?
    class Post < Sequel::Model; end
    VERSIONS = Castellan::Versions::ExactVersions.new(DB)
    VERSIONS.install(%w[posts])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: VERSIONS)
    class PostResource < Castellan::Resource
      model Post
      attributes :title
      cache :exact
    end
    class PlainPostResource < Castellan::Resource
      model Post
      type "plain"
      attributes :title
    end
    class CurrentPostResource < PostResource
      type "current"
      scope { |posts, _| posts.where(Sequel.lit("? > 0", Process.clock_gettime(Process::CLOCK_REALTIME))) }
    end
    class LoudPostResource < PostResource
      type "loud"
      attribute(:loud, columns: [:title]) { |row| row.title.upcase }
    end
    map("/bytes") { run ->(_env) { [200, {}, [Castellan.cache.fetch("bytes", depends_on: [Post, "posts"]) { "bytes" }]] } }
    map("/empty") do
      run ->(_env) { [200, {}, %w[a b].filter_map { |key| Castellan.cache.fetch(key, depends_on: Post) { "b" if key == "b" } }] }
    end
    map("/failing") do
      run ->(env) { nil.page rescue [500, { "set" => (env["sinatra.error"] = $!).class.name }, []] }
    end
    map("/https") do
      run ->(env) { env["QUERY_STRING"] == "no" ? [403, {}, ["no"]] : [301, { "location" => "https://localhost/https" }, []] }
    end
    map("/http") do
      use Castellan::HTTPCache
      run ->(_env) { [200, { "cache-control" => "max-age=60" }, ["http"]] }
    end
    map("/unstored") do
      use Castellan::HTTPCache, max_body: 10
      run ->(env) {
        fields = { "p" => { "cache-control" => "private" }, "c" => { "cache-control" => "max-age=9", "set-cookie" => "a=b" },
                   "l" => { "cache-control" => "max-age=9" }, "f" => { "cache-control" => "max-age=9, private=x-a", "vary" => "*" },
                   "s" => { "etag" => '"a"' }, "m" => { "cache-control" => "max-age: 60" }, "o" => { "pragma" => "no-cache" } }
        [env["QUERY_STRING"] == "s" ? 403 : 200, fields.fetch(env["QUERY_STRING"], {}), ["longer than ten bytes"]]
      }
    end
    map("/away") do
      use Castellan::HTTPCache, store: Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1")
      run ->(_env) { [200, { "cache-control" => "max-age=60" }, ["http"]] }
    end
    map("/unversioned") do
      run ->(_env) { [200, {}, [Castellan.cache.fetch("some", depends_on: %w[posts comnents]) { "" }]] }
    end
    map("/none") { run ->(_env) { [200, {}, ["none"]] } }
    run Castellan.app {
      resource PostResource
      resource PlainPostResource
      resource LoudPostResource
      resource CurrentPostResource
    }
  RUBY

  def test_a_kept_document_is_explained_with_key_and_version
    output = explain("/posts", "-H", "Accept-Encoding: gzip")
    assert_match(%r{\AGET /posts, now: 200, .*, 2 queries$}, output)
    assert_match(/^  caches: form miss, then document miss, then document fill \(.*\), then form fill/, output)
    assert_match(/^  content-encoding: gzip$/, output)
    assert_match(/^  document of PostResource$.*^    tables: posts$.*^    version: \S+$.*^    key: castellan:1:[\w-]{32}$/m, output)
    assert_match(%r{^GET /posts, again: 200, .*, 1 query$.*^  caches: form hit}m, output)
  end

  def test_keys_that_change_with_each_request_are_pointed_out
    refute_includes explain("/posts"), "the keys have changed"
    assert_includes explain("/current"), "the keys have changed"
  end

  def test_what_is_not_kept_has_a_reason
    assert_match(/kept: never, because PlainPostResource declares no cache: write cache :exact/, explain("/plain"))
    assert_match(/kept: never, because:$.*loud/m, explain("/loud"))
    assert_match(/no document of Castellan/, explain("/none"))
  end

  def test_bytes_of_the_application_are_explained
    output = explain("/bytes")
    assert_match(/caches: fetch miss, then fetch fill.*fetch\("bytes"\)$.*tables: posts$.*key: castellan:1:/m, output)
    assert_match(/again: .*caches: fetch hit/m, output)
  end

  def test_a_path_that_the_http_cache_answers_is_explained
    output = explain("/http?page=1")
    assert_match(/now: 200.*^  cache-status: Castellan; fwd=uri-miss; stored$.*caches: http miss$/m, output)
    assert_match(%r{^    key: http://localhost/http\?page=1$}, output)
    assert_match(/again: 200.*^  cache-status: Castellan; hit; ttl=\d+$.*^  age: \d+$.*caches: http hit/m, output)
  end

  def test_what_the_http_cache_does_not_store_has_a_reason
    { "p" => "it is private (cache-control)", "c" => "it has Set-Cookie", "l" => "it is over max_body: or incomplete, has over 256 tags",
      "f" => "its Vary contains * or is invalid", "n" => "it is stale at once and has no validator",
      "s" => "a response with status 403 is stored only with max-age, s-maxage or Expires", "m" => "its Cache-Control is malformed",
      "o" => "it has Pragma: no-cache" }.each do |query, reason|
      assert_includes explain("/unstored?#{query}"), "\n    not stored: #{reason}"
    end
    refute_includes explain("/http"), "not stored"
    assert_match(/^    not stored: .* or the store failed$/, explain("/away"))
  end

  def test_a_document_that_the_store_does_not_take_has_a_reason
    small = APP.sub("MemoryStore.new", "MemoryStore.new(max_bytesize: 100)")
    %w[/posts /bytes].each do |path|
      output, = run_program("explain", path, app: small)
      assert_match(/^  not stored: the bytes are too large for the store, or the store failed, or it is a NullStore/, output)
    end
    refute_includes explain("/posts"), "not stored"
    refute_includes explain("/bytes"), "not stored"
  end

  def test_a_block_that_returns_nil_is_the_reason_that_nothing_is_stored
    output = explain("/empty")
    assert_match(/^  caches: fetch miss, then fetch miss, then fetch fill .*$/, output)
    assert_match(/^  not stored: the block of Castellan.cache.fetch returned nil, or raised an error$/, output)
  end

  def test_tables_without_a_version_are_named
    assert_match(/kept: not now: comnents has no version: add .*comnents.* to a migration/, explain("/unversioned"))
    assert_match(/tables: posts$.*^    version: \S+$.*key:/m, explain("/bytes"))
  end

  def test_a_refused_request_has_the_reason_of_its_error_document
    assert_match(/now: 400.*reason: Invalid include: author is not a relationship/m, explain("/posts?include=author"))
  end

  def test_a_response_without_an_error_document_has_the_reason_and_what_to_write
    assert_match(/now: 301.*^  reason: it redirects to https \(force_ssl\); pass -H 'X-Forwarded-Proto: https'$/m, explain("/https"))
    assert_match(/now: 403.*^  reason: this user is not permitted to see it \(the body: no\)$/m, explain("/https?no"))
  end

  def test_an_error_page_has_the_exception_of_the_framework
    assert_match(/now: 500.*reason: NoMethodError: undefined method/m, explain("/failing"))
  end

  def test_a_privilege_that_the_role_lacks_is_named
    needs :postgres
    url = Castellan::TestServers.postgres_url
    role = "castellan_explain_#{SecureRandom.hex(4)}"
    database = Sequel.connect(url)
    database.run("CREATE TABLE posts (id serial PRIMARY KEY, title text); CREATE ROLE #{role} LOGIN; GRANT SELECT ON posts TO #{role}")
    Castellan::Versions::ExactVersions.new(database).install(%w[posts])
    database.run("REVOKE SELECT ON castellan_versions FROM PUBLIC")
    app = APP.sub('Sequel.sqlite("app.sqlite3")', "Sequel.connect(#{url.sub("postgres@", "#{role}@").inspect})")
             .sub(/^DB.create_table.*\n.*\n/, "").sub("VERSIONS.install", "# ")
    %w[/posts /bytes].each do |path|
      output, errors, status = run_program("explain", path, app: app)
      assert status.success?, errors
      assert_match(/kept: not now: .* \(ERROR:  permission denied for table castellan_versions; .*run GRANT SELECT ON/, output)
    end
  ensure
    database&.run("DROP OWNED BY #{role}; DROP ROLE #{role}")
    Sequel::DATABASES.delete(database&.tap(&:disconnect))
  end

  def test_an_error_of_the_application_is_printed_without_our_frames
    output, errors, status = run_program("explain", "/", app: 'run ->(_env) { raise KeyError, "no PAYMENT_KEY" }')
    assert_equal ["", 1], [output, status.exitstatus]
    assert_match(%r{\Acastellan cache: GET /: the application raised an error: KeyError: no PAYMENT_KEY\n    from config\.ru:1}, errors)
  end

  def test_ctrl_c_ends_the_program
    _, errors, status = run_program("explain", "/", app: 'run ->(_env) { Process.kill(:INT, $$) && sleep }')
    assert_equal [130, "castellan cache: interrupted\n"], [status.exitstatus, errors]
  end

  # Rails' production.rb logs to standard output.
  def test_what_the_application_prints_goes_to_standard_error
    noisy = "puts 'booted'\nuse Class.new { def initialize(app) = @app = app\n def call(env) = puts('called') || @app.call(env) }\n#{APP}"
    output, errors, status = run_program("explain", "/posts", app: noisy)
    assert status.success?, errors
    assert_match(%r{\AGET /posts, now: 200, [^\n]*\n  etag}, output)
    assert_equal [false, "booted\ncalled\ncalled\n"], [output.match?(/booted|called/), errors]
  end

  def test_wrong_arguments_are_refused
    [[], %w[explain], %w[clear /posts], %w[explain /posts config.ru more], %w[explain posts]].each do |arguments|
      _, errors, status = run_program(*arguments)
      assert_equal [2, true], [status.exitstatus, errors.include?("castellan cache explain PATH")], arguments.inspect
    end
  end

  private

  def explain(*arguments)
    output, errors, status = run_program("explain", *arguments)
    assert status.success?, output + errors
    output
  end

  def run_program(*arguments, app: APP)
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "config.ru"), app)
      Open3.capture3({ "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile") }, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}",
                     File.join(ROOT, "exe/castellan"), "cache", *arguments, chdir: dir)
    end
  end
end
