# frozen_string_literal: true

require "test_helper"
require "open3"
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
    class LoudPostResource < PostResource
      type "loud"
      attribute(:loud, columns: [:title]) { |row| row.title.upcase }
    end
    map("/bytes") { run ->(_env) { [200, {}, [Castellan.cache.fetch("bytes", depends_on: [Post, "posts"]) { "bytes" }]] } }
    map("/none") { run ->(_env) { [200, {}, ["none"]] } }
    run Castellan.app {
      resource PostResource
      resource PlainPostResource
      resource LoudPostResource
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

  def test_wrong_arguments_are_refused
    [[], %w[explain], %w[clear /posts], %w[explain /posts config.ru more]].each do |arguments|
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

  def run_program(*arguments)
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "config.ru"), APP)
      Open3.capture3({ "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile") }, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}",
                     File.join(ROOT, "exe/castellan"), "cache", *arguments, chdir: dir)
    end
  end
end
