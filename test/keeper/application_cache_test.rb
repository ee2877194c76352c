# frozen_string_literal: true

require "test_helper"
require "active_support"
require "active_support/core_ext/string/output_safety"
require "document/library"

# Bytes of the application's own code are computed once, and again after a write to a table that they depend on.
module ApplicationCacheContract
  def setup
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @store = Castellan::Store::MemoryStore.new
    @cache = cache
    @computed = 0
  end

  def teardown
    @versions&.uninstall(Library::TABLES)
  end

  def test_bytes_are_computed_once_and_equal
    2.times { assert_equal "Grüße 1", titles }
    assert_equal [Encoding::UTF_8, Encoding::UTF_8], [titles.encoding, titles.encoding]
    assert_equal "Grüße 1", titles
  end

  def test_a_write_to_a_table_computes_anew
    before = titles
    library.run("UPDATE comments SET body = 'changed'")
    refute_equal before, titles
    after = titles
    library.run("UPDATE tags SET name = 'changed'")
    assert_equal after, titles, "no dependency"
  end

  def test_binary_bytes_stay_binary
    bytes = "\x89PNG\xFF".b
    found = Array.new(2) { @cache.fetch("image", depends_on: "tags") { bytes } }
    assert_equal [bytes, bytes], found
    assert_equal [Encoding::BINARY], found.map(&:encoding).uniq
    assert_equal [["", Encoding::BINARY], ["", Encoding::UTF_8]],
                 ["".b, ""].map { |empty|
                   (found = @cache.fetch(empty.encoding.name, depends_on: "tags") {
                     empty
                   }) && [found, found.encoding]
                 }
  end

  # Of `capture` or `render` in a template, which would escape the cached HTML, but not that of a process without a store.
  def test_html_that_is_safe_stays_safe
    html = "<b>ü</b>".html_safe
    assert_equal [[html, true]] * 2, Array.new(2) { @cache.fetch("html", depends_on: "tags") { html } }.map { |one| [one, one.html_safe?] }
    assert_equal [false] * 2, Array.new(2) { @cache.fetch("text", depends_on: "tags") { "<b>" }.html_safe? }
  end

  def test_a_returned_value_may_be_changed
    2.times { (titles << "!").then { |bytes| assert_equal "Grüße 1!", bytes } }
  end

  def test_keys_and_vary_are_distinguished
    keys = [["a"], ["a", nil], ["a", 1], %w[a 1], [["a"], 1], "a", :b, ["a", true]]
    found = keys.map { |key| @cache.fetch(key, depends_on: "tags") { key.inspect } }
    assert_equal keys.map(&:inspect), found
    found = [nil, 1, "de", [1, "de"]].map { |vary| @cache.fetch("x", depends_on: "tags", vary: vary) { vary.inspect } }
    assert_equal ["nil", "1", '"de"', '[1, "de"]'], found
    assert_equal "authors", @cache.fetch("x", depends_on: "authors") { "authors" }, "another table is another key"
  end

  def test_another_revision_computes_anew
    assert_equal %w[1 2], [cache(revision: "1"), cache(revision: "2")].map { |one|
      one.fetch("x", depends_on: "tags") {
        (@computed += 1).to_s
      }
    }
  end

  def test_the_etag_changes_with_the_tables_and_runs_nothing
    before = @cache.etag("x", depends_on: [library.models::Article, "comments"])
    assert_match(/\A"[\w-]{32}"\z/, before)
    assert_equal before, @cache.etag("x", depends_on: ["comments", library.models::Article])
    library.run("DELETE FROM comments")
    refute_equal before, @cache.etag("x", depends_on: [library.models::Article, "comments"])
  end

  def test_without_a_version_nothing_is_kept
    @versions.uninstall(%w[comments])
    @cache = cache(log: ->(_line) {})
    assert_equal %w[1 2], Array.new(2) { @cache.fetch("x", depends_on: "comments") { (@computed += 1).to_s } }
    assert_nil @cache.etag("x", depends_on: "comments")
  end

  def test_a_table_without_a_version_is_logged_once
    @versions.uninstall(%w[comments])
    lines = []
    cache = cache(log: ->(line) { lines << line })
    2.times { cache.fetch(["posts", 7], depends_on: %w[tags comments]) { "" } }
    cache.fetch("misspelt", depends_on: "comnents") { "" }
    cache.fetch("other", depends_on: "comments") { "" }
    assert_includes lines.first, "a view has no version (name its tables), nor has a table of another database (pass expires_in: "
    assert_equal ['fetch("posts") is not kept, because comments has no version: add castellan_versions :comments to a',
                  'fetch("misspelt") is not kept, because comnents has no version: add castellan_versions :comnents to a'],
                 lines.map { |line| line[/fetch\(.* to a/] }
  end

  def test_tables_without_a_version_are_logged_in_one_line
    @versions.uninstall(%w[comments tags])
    lines = []
    cache(log: ->(line) { lines << line }).fetch("posts", depends_on: %w[tags comments]) { "" }
    assert_equal ["comments, tags have no version: add castellan_versions :comments, :tags to a"],
                 lines.map { |line| line[/comments, tags .* to a/] }
  end

  def test_an_error_is_raised_and_not_kept
    assert_equal "mine", assert_raises(IOError) { @cache.fetch("x", depends_on: "tags") { raise IOError, "mine" } }.message
    assert_nil @cache.fetch("x", depends_on: "tags") { nil }
    assert_equal "bytes", @cache.fetch("x", depends_on: "tags") { "bytes" }
  end

  def test_expired_bytes_are_computed_again
    now = Castellan::Clock.wall_ms
    Castellan::Clock.stub(:wall_ms, -> { now }) do
      ask = -> { @cache.fetch("x", expires_in: 60) { (@computed += 1).to_s } }
      assert_equal %w[1 1], [ask.call, ask.call]
      now += 60_001
      assert_equal "2", ask.call
    end
  end

  def test_errors_say_what_to_write
    refused("depends_on: [Post") { @cache.fetch("x") { +"" } }
    refused("takes models and names") { @cache.fetch("x", depends_on: [7]) { "" } }
    refused("name of a table") { @cache.fetch("x", depends_on: ["drop table;"]) { "" } }
    refused("needs a key") { @cache.fetch([], depends_on: "tags") { "" } }
    refused("got Hash: write its values; a parameter (?page[a]=1) as params[:page].to_s.to_i") do
      @cache.fetch(["posts", { "a" => "1" }], depends_on: "tags") { "" }
    end
    refused("got Float: write to_s or to_i") { @cache.fetch([1.5], depends_on: "tags") { "" } }
    refused("got Time: write to_s or to_i") { @cache.fetch(["a", Time.now], depends_on: "tags") { "" } }
    refused("got Object: write its id, or to_s") { @cache.fetch([Object.new], depends_on: "tags") { "" } }
    refused("got a relation or dataset; write the model, such as Post") do
      @cache.fetch("x", depends_on: library.models::Article.where(id: 1)) { "" }
    end
    assert_equal 'Castellan.cache.etag needs tables: write depends_on: [Post, "comments"]',
                 assert_raises(Castellan::ConfigurationError) { @cache.etag("x", depends_on: []) }.message
    refused("write to_json") { @cache.fetch("x", depends_on: "tags") { { a: 1 } } }
    require "jbuilder"
    refused("got Jbuilder: write target!") { @cache.fetch("x", depends_on: "tags") { Jbuilder.new { |json| json.a 1 } } }
    refused("UTF-8") { @cache.fetch("x", depends_on: "tags") { "ü".encode("ISO-8859-1") } }
    refused("needs a block") { @cache.fetch("x", depends_on: "tags") }
    refused("expires_in: must be") { @cache.fetch("x", expires_in: 0) { "" } }
    refused("stale_if_error: must be seconds above 0 or nil, got Infinity") do
      @cache.fetch("x", depends_on: "tags", stale_if_error: Float::INFINITY) { "" }
    end
  end

  def test_switched_off_it_computes
    with_env("CASTELLAN" => "off") {
      assert_equal %w[1 2], Array.new(2) {
        @cache.fetch("x", depends_on: "tags") {
          (@computed += 1).to_s
        }
      }
    }
  end

  private

  def refused(text, &block)
    assert_includes assert_raises(Castellan::ConfigurationError, text, &block).message, text
  end

  def titles
    @cache.fetch(%w[titles], depends_on: [library.models::Article, "comments"]) { "Grüße #{@computed += 1}" }
  end

  def cache(**options)
    Castellan::Keeper.new(store: @store, versions: @versions, **options).application_cache
  end
end

class ApplicationCacheOnActiveRecordTest < Minitest::Test
  include ApplicationCacheContract

  def library = Library.active_record(:sqlite)

  def test_without_a_keeper_everything_is_computed
    skip_keeper = Castellan.keeper
    Castellan.keeper = nil
    assert_equal %w[1 2], Array.new(2) { Castellan.cache.fetch("x", depends_on: "tags") { (@computed += 1).to_s } }
    refused("would never compute these bytes again: write depends_on: [Post") { Castellan.cache.fetch("x") { +"" } }
    Castellan.keep(store: @store, versions: @versions)
    assert_equal %w[3 3], Array.new(2) { Castellan.cache.fetch("x", depends_on: "tags") { (@computed += 1).to_s } }
  ensure
    Castellan.keeper = skip_keeper
  end

  def test_a_model_of_another_database_is_refused
    other = Library.sequel(:sqlite).models::Article
    message = assert_raises(Castellan::ConfigurationError) { @cache.fetch("x", depends_on: other) { "" } }.message
    assert_includes message, "in another database"
  end
end

class ApplicationCacheOnSequelTest < Minitest::Test
  include ApplicationCacheContract

  def library = Library.sequel(:sqlite)
end

class ApplicationCacheOnActiveRecordAndPostgresTest < Minitest::Test
  include ApplicationCacheContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)

  def test_nothing_is_kept_in_a_transaction_that_has_written
    library.transaction do
      library.run("UPDATE tags SET name = 'open'")
      assert_equal %w[1 2], Array.new(2) { @cache.fetch("x", depends_on: "tags") { (@computed += 1).to_s } }
      assert_empty @cache.missing(%w[tags])
    end
  end
end
