# frozen_string_literal: true

require "test_helper"
require "active_record"
require "active_support/cache"
require "rack"
require "rack/mock_request"

# Rails.cache is a store wherever Castellan takes one; any other object raises with the correction.
class AcceptedStoresTest < Minitest::Test
  APPLICATION = ->(_env) { [200, { "cache-control" => "max-age=60" }, ["x"]] }
  TAKERS = {
    "Castellan.keep" => ->(store) { Castellan::Keeper.new(store: store, versions: versions) },
    "HTTPCache" => ->(store) { Castellan::HTTPCache.new(APPLICATION, store: store) },
    "CommitVersions" => ->(store) { Castellan::Versions::CommitVersions.new(store) },
    "TieredStore" => ->(store) { Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, store) },
    "RateLimit" => ->(store) { Castellan::RateLimit.new(APPLICATION, limit: 1, period: 60, store: store) }
  }.freeze

  def self.versions = Castellan::Versions::CommitVersions.new(Castellan::Store::MemoryStore.new)

  def test_castellan_keep_caches_in_rails_cache
    keeper = Castellan::Keeper.new(store: cache, versions: Castellan::Versions::CommitVersions.new(cache))
    bytes = %w[first second].map { |text| keeper.application_cache.fetch("k", depends_on: "posts") { text } }
    assert_equal %w[first first], bytes
  end

  def test_http_cache_stores_responses_in_rails_cache
    middleware = Castellan::HTTPCache.new(APPLICATION, store: cache)
    statuses = Array.new(2) { Rack::MockRequest.new(middleware).get("/")["cache-status"] }
    assert_match(/; stored\z/, statuses.first)
    assert_match(/; hit;/, statuses.last)
    Castellan::HTTPCache.purge("http://example.org/", store: cache)
    assert_match(/; fwd=uri-miss/, Rack::MockRequest.new(middleware).get("/")["cache-status"])
  end

  def test_a_tiered_store_reads_from_memory_before_rails_cache
    store = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, cache)
    store.write_multi({ "a" => "x" * 200, "b" => "small" })
    cache.clear
    assert_equal ["a"], store.read_multi(%w[a b]).keys
  end

  def test_an_object_that_is_no_store_raises_with_the_correction
    { nil => "got nil", :redis => "got :redis", Castellan::Store::MemoryStore => "got Castellan::Store::MemoryStore",
      Object.new => "got an instance of Object" }.each do |given, message|
      TAKERS.each do |name, take|
        next if given.nil? && name == "HTTPCache" # its default

        error = assert_raises(Castellan::ConfigurationError, name) { take.call(given) }
        assert_includes error.message, "must be a store or Rails.cache, #{message}; write for example "
        assert_includes error.message, "Castellan::Store::RedisStore.new(url: ENV.fetch("
      end
    end
  end

  def test_caches_and_stores_are_inspected_by_their_class
    memory = Castellan::Store::MemoryStore.new
    memory.write_multi({ "a" => "bytes" })
    keeper = Castellan::Keeper.new(store: memory, versions: self.class.versions)
    [memory, Castellan::Store::FailSafe.new(memory), Castellan::Store::TieredStore.new(memory, memory), Castellan::Store.for(cache),
     keeper, keeper.application_cache, Castellan::HTTPCache.new(APPLICATION, store: memory)].each do |object|
      assert_equal "#<#{object.class}>", object.inspect
    end
  end

  def test_the_password_of_a_url_is_not_in_the_message
    error = assert_raises(Castellan::ConfigurationError) { TAKERS["Castellan.keep"].call("redis://:secret@127.0.0.1") }
    assert_includes error.message, "got an instance of String"
    refute_includes error.message, "secret"
  end

  def test_a_logger_without_call_raises_with_the_correction
    logger = Logger.new(nil)
    options = { store: Castellan::Store::MemoryStore.new, versions: self.class.versions }
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Keeper.new(**options, log: logger) }
    assert_equal "Castellan.keep log: must respond to call, got an instance of Logger; write log: Rails.logger.method(:warn)", error.message
    assert Castellan::Keeper.new(**options, log: logger.method(:warn))
  end

  def test_versions_without_current_raise_with_the_correction
    { nil => "got nil", ActiveRecord::Base => "got ActiveRecord::Base", Castellan::Versions::ExactVersions => "got Castellan::Versions::",
      "posts" => "got an instance of String" }.each do |given, message|
      error = assert_raises(Castellan::ConfigurationError) { Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: given) }
      assert_includes error.message, message
      assert_includes error.message, "write for example Castellan::Versions::ExactVersions.new(ActiveRecord::Base)"
    end
  end

  def test_the_http_cache_refuses_a_tiered_store_which_would_serve_what_another_process_has_invalidated
    memory = Castellan::Store::MemoryStore.new
    error = assert_raises(Castellan::ConfigurationError) { TAKERS["HTTPCache"].call(Castellan::Store::TieredStore.new(memory, memory)) }
    assert_equal "Castellan::HTTPCache store: must be a store without near copies, which outlive an invalidation by another process, " \
                 "got an instance of Castellan::Store::TieredStore; write for example store: Castellan::Store::RedisStore.new(url: …)",
                 error.message
  end

  def test_a_tiered_store_with_swapped_stores_raises_with_the_correction
    error = assert_raises(Castellan::ConfigurationError) do
      Castellan::Store::TieredStore.new(Castellan::Store::NullStore.new, Castellan::Store::MemoryStore.new)
    end
    assert_includes error.message, "the first store must be a MemoryStore, got an instance of Castellan::Store::NullStore"
    assert_includes error.message, "write TieredStore.new(MemoryStore.new, RedisStore.new(url: …))"
  end

  private

  def cache = @cache ||= ActiveSupport::Cache::MemoryStore.new
end
