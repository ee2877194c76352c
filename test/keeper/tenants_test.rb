# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack/mock_request"

# Tenants with a schema each: neither stale documents nor per-viewer values cross over.
class TenantsTest < Minitest::Test
  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Product < Record
    self.table_name = "public.products"
  end

  class Post < Record
    self.table_name = "posts"
  end

  class ProductResource < Castellan::Resource
    model Product
    type "products"
    attributes :name
    per_viewer(:own, version: ->(_viewer) { 1 }) { |_ids, _viewer| Post.pluck(:id) }
    cache :exact
  end

  class PostResource < Castellan::Resource
    class << self
      attr_accessor :failing
    end

    model Post
    type "posts"
    attribute(:title, columns: [:title], pure: true) { |row| PostResource.failing ? raise("failing") : row.title }
    cache :exact, stale_if_error: 60
  end

  def setup
    needs :postgres
    @keeper = Castellan.keeper
    Record.establish_connection(Castellan::TestServers.postgres_url)
    run_sql("CREATE TABLE products (id int PRIMARY KEY, name text)", "INSERT INTO products VALUES (1, 'a'), (2, 'b')")
    versions = Castellan::Versions::ExactVersions.new(Record)
    versions.install(%w[products])
    tenants { |name, id|
      run_sql("CREATE SCHEMA #{name}", "CREATE TABLE #{name}.posts (id int PRIMARY KEY, title text)")
      run_sql("INSERT INTO #{name}.posts VALUES (#{id}, 'secret of #{name}')")
      versions.install(%w[products posts])
    }
    [Product, Post].each(&:reset_column_information)
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    @app = Castellan.app do
      resource ProductResource
      resource PostResource
    end
  end

  def teardown
    PostResource.failing = false
    Castellan.keeper = @keeper
    forget(Record) if @app
  end

  def test_values_of_a_viewer_are_those_of_the_tenant
    2.times do
      found = tenants { get("/products") }
      assert_equal([[true, false], [false, true]], found.map { |_, _, document| document["data"].map { |one| one["attributes"]["own"] } })
      assert_equal 2, found.map { |_, headers,| headers["etag"] }.uniq.size
    end
  end

  def test_an_error_of_one_tenant_is_not_answered_with_the_document_of_another
    one, two = tenants.to_a
    within(one) { assert_equal "secret of one", get("/posts").last["data"].first["attributes"]["title"] }
    PostResource.failing = true
    within(two) { assert_equal("failing", assert_raises(RuntimeError) { get("/posts") }.message) }
    within(one) do
      run_sql("UPDATE one.posts SET title = 'new'")
      assert_equal "secret of one", get("/posts").last["data"].first["attributes"]["title"]
    end
  end

  def test_the_bytes_of_a_serializer_are_those_of_the_tenant
    fetch = ->(&block) { Castellan.cache.fetch("posts", depends_on: "posts", stale_if_error: 60, &block) }
    one, two = tenants.to_a
    within(one) { assert_equal "one", fetch.call { "one" } }
    within(two) { assert_raises(RuntimeError) { fetch.call { raise "failing" } } }
  end

  def test_a_rack_body_that_is_read_after_the_search_path_has_changed_back_raises
    document = within("one") { PostResource.document.tap(&:headers) }
    error = assert_raises(Castellan::ConfigurationError) { document.each { |bytes| flunk(bytes) } }
    assert_includes error.message, 'made with the search path "one,public" and is read with "public"'
    within("one") { assert_equal 1, JSON.parse(PostResource.document.enum_for(:each).to_a.join)["data"].size }
  end

  # ActiveRecord's reader remembers the path, on this connection only.
  def test_a_search_path_of_the_database_that_code_has_read_does_not_change
    run_sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = one, public', current_database()); END $$")
    Record.connection_pool.disconnect!
    assert_equal "one, public", Record.connection.schema_search_path
    document = PostResource.document
    Record.connection_pool.disconnect!
    assert_includes document.each.to_a.join, "secret of one"
  end

  # Such as an excluded model of Apartment, whose table each tenant's schema has, too.
  def test_a_table_of_a_named_schema_is_not_that_of_the_tenant
    run_sql("CREATE TABLE one.products (id int PRIMARY KEY, name text)", "CREATE TABLE public.posts (id int PRIMARY KEY, title text)")
    within("one") { Castellan::Versions::ExactVersions.new(Record).install(%w[products]) }
    named = -> { within("one") { get("/products/1").last["data"]["attributes"]["name"] } }
    assert_equal 200, get("/products/1").first # remembers the tables of the statement
    assert_equal "a", named.call
    run_sql("UPDATE public.products SET name = 'new' WHERE id = 1")
    assert_equal "new", named.call
  end

  def test_tenants_with_copies_of_a_database_share_no_bytes_of_a_serializer
    same = Castellan::Versions::ExactVersions.new(Record)
    same.define_singleton_method(:current) { |_dependencies, &_failed| "equal" }
    cache = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: same).application_cache
    assert_equal(%w[one two], tenants { |name, _| cache.fetch("posts", depends_on: "posts") { name } })
  end

  # ActiveRecord reads the search path and memoizes it when it prepares a statement.
  def test_the_memo_of_the_default_search_path_is_no_other_tenant
    versions = Castellan::Versions::ExactVersions.new(Record)
    Record.connection.execute("RESET search_path")
    Record.connection.instance_variable_set(:@schema_search_path, nil)
    before = versions.address
    assert_match(/\A[[:print:]]+\z/, before) # part of what CommitVersions returns
    assert_equal '"$user", public', Record.connection.schema_search_path
    assert_equal before, versions.address
    within("one") { refute_equal before, versions.address }
  end

  def test_the_default_search_path_is_another_tenant_than_that_of_database_yml
    Record.establish_connection("#{Castellan::TestServers.postgres_url}?schema_search_path=one,public")
    versions = Castellan::Versions::ExactVersions.new(Record)
    before = versions.address
    assert_equal "one, public", Record.connection.schema_search_path
    assert_equal before, versions.address
    ['"$user", public', :two].each do |path|
      Record.connection.schema_search_path = path
      refute_equal before, versions.address
    end
  end

  def test_connections_whose_user_or_settings_choose_a_schema_share_no_bytes_of_a_serializer
    url = Castellan::TestServers.postgres_url
    cache = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: Castellan::Versions::ExactVersions.new(Record))
                             .application_cache
    tenants = [{}, { variables: { search_path: "two" } }, { options: "-c search_path=one" }, { url: url.sub("postgres@", "one@") }]
    fetched = tenants.map do |settings|
      Record.establish_connection({ url: url, **settings })
      cache.fetch("tenant", expires_in: 60) { settings.inspect }
    end
    assert_equal tenants.map(&:inspect), fetched
  end

  def test_a_role_without_a_database_has_no_address
    versions = Castellan::Versions::CommitVersions.new(Castellan::Store::MemoryStore.new)
    versions.watch(Post)
    current = -> { versions.current([Castellan::Versions::Dependency.new("posts")]) }
    assert_includes current.call, "castellan_"
    ActiveRecord::Base.connected_to(role: :reading) { refute_includes current.call, "castellan_" }
  end

  private

  def get(path)
    status, headers, body = @app.call(Rack::MockRequest.env_for(path))
    [status, headers, JSON.parse(body.to_enum.to_a.join)]
  end

  def tenants
    return %w[one two] unless block_given?

    %w[one two].each.with_index(1).map { |name, id| within(name) { yield name, id } }
  end

  # As Apartment switches tenants.
  def within(name)
    Record.connection.schema_search_path = "#{name},public"
    yield
  ensure
    Record.connection.schema_search_path = "public"
  end

  def run_sql(*statements) = statements.each { |sql| Record.connection.execute(sql) }
end
