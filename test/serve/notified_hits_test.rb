# frozen_string_literal: true

require "test_helper"
require "active_record"
require "i18n"
require "sequel"
require "pg"
require "rack/mock_request"

# A hit whose version is in memory is the response that the database would give to the same thread.
module NotifiedHitsContract
  def setup
    needs :postgres
    @keeper = Castellan.keeper
    @url = Castellan::TestServers.postgres_url
    @other = PG.connect(@url)
    @other.exec("CREATE TABLE posts (id serial PRIMARY KEY, title text, sent_at timestamptz); " \
                "INSERT INTO posts (title, sent_at) VALUES ('<one>', '2026-01-01 00:00:00Z'); " \
                "CREATE TABLE marks (viewer_id int, post_id int)")
    connect
    @versions = Castellan::Versions::NotifiedVersions.new(source, recheck: 3600)
    @versions.install(%w[posts marks])
    eventually { @versions.listening? }
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: @versions)
    resource = resource_class
    @app = Castellan.app { resource resource, at: "posts" }
    marked = marked_resource_class
    @personal = Castellan.app do
      resource marked, at: "posts"
      authenticate { |env| Integer(env["HTTP_AUTHORIZATION"]) }
    end
    3.times { get }
  end

  def teardown
    Castellan.keeper = @keeper if @url
    @versions&.close
    disconnect if @other
    @other&.close
  end

  def test_a_hit_asks_nothing_until_a_write_of_any_program
    before = @versions.stub(:current, ->(*) { flunk "the version was looked up again" }) { Array.new(3) { get } }
    assert_equal [get], before.uniq
    @other.exec("UPDATE posts SET title = 'two'")
    eventually { get[2].include?("two") }
    after = silent { get }
    assert_includes after[2], "two"
    refute_equal before.first[1]["etag"], after[1]["etag"]
  end

  def test_a_thread_sees_what_its_own_transaction_wrote
    rolled_back do
      run_sql("UPDATE posts SET title = 'mine'")
      assert_includes get[2], "mine"
    end
    silent { refute_includes get[2], "mine" }
  end

  def test_without_a_listener_each_write_is_seen_at_once
    @versions.close
    @other.exec("UPDATE posts SET title = 'at once'")
    assert_includes get[2], "at once"
  end

  def test_the_database_is_no_longer_asked_once_the_listener_is_back
    @versions.instance_variable_get(:@listener).stub(:generation, nil) { 3.times { get } }
    2.times { get }
    @versions.stub(:current, ->(*) { flunk "the version was looked up again" }) { assert_equal 200, get.first }
  end

  def test_castellan_off_is_noticed
    with_env("CASTELLAN" => "off") { @versions.stub(:unchanged?, ->(*) { flunk "the cache was asked" }) { assert_equal 200, get.first } }
  end

  def test_values_of_a_viewer_are_read_again_after_a_write_of_any_program
    3.times { assert_equal [false, false], [mine?(1), mine?(2)] }
    silent { assert_equal [false, false], [mine?(1), mine?(2)] }
    before = personal(1)[1]["etag"]
    @other.exec("INSERT INTO marks VALUES (1, 1)")
    eventually { mine?(1) }
    silent { 2.times { assert_equal [true, false], [mine?(1), mine?(2)] } }
    assert_equal 200, personal(1, "HTTP_IF_NONE_MATCH" => before).first
    @other.exec("UPDATE posts SET title = 'two'")
    eventually { personal(2)[2].include?("two") }
    assert_equal [true, false], [mine?(1), mine?(2)]
  end

  def test_a_thread_sees_the_values_that_its_own_transaction_wrote
    3.times { refute mine?(1) }
    rolled_back do
      run_sql("INSERT INTO marks VALUES (1, 1)")
      assert_equal [true, false], [mine?(1), mine?(2)]
    end
    silent { refute mine?(1) }
  end

  private

  def get(**fields) = response(@app, fields)
  def personal(viewer, **fields) = response(@personal, { "HTTP_AUTHORIZATION" => viewer.to_s, **fields })
  def mine?(viewer) = JSON.parse(personal(viewer)[2])["data"].first["attributes"]["mine"]

  def response(app, fields)
    status, headers, body = app.call(Rack::MockRequest.env_for("/posts", fields))
    [status, headers, body.to_enum(:each).to_a.join]
  end

  def silent(&block) = @versions.exact.stub(:current, ->(*) { flunk "the database was asked" }, &block)
end

class NotifiedHitsOnActiveRecordTest < Minitest::Test
  include NotifiedHitsContract

  # A pool of its own.
  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Post < Record; end

  # Connects to the database of another role.
  class Elsewhere < ActiveRecord::Base
    self.abstract_class = true
  end

  class PostResource < Castellan::Resource
    model Post
    type "posts"
    attributes :title, :sent_at
    cache :notified
  end

  class MarkedResource < PostResource
    per_viewer(:mine, version: :marks) do |_ids, viewer|
      Record.connection.select_values("SELECT post_id FROM marks WHERE viewer_id = #{Integer(viewer)}")
    end
  end

  def test_what_the_application_sets_for_a_thread_is_noticed
    at_home = get
    around = { "zone" => [->(&request) { Time.use_zone("Hawaii", &request) }, "2026-01-01"],
               "scope" => [->(&request) { Post.where(id: 0).scoping(&request) }, '"data":[]'],
               "escaping" => [method(:with_plain_html), "<one>"],
               "search path" => [method(:in_shop), "of the shop"] }
    around.each do |name, (set, expected)|
      2.times { assert_includes set.call { get }[2], expected, name }
      assert_equal at_home, silent { get }, name
    end
  end

  def test_values_of_a_viewer_are_of_one_locale
    resource = self.class.const_set(:TranslatedResource, Class.new(PostResource) {
      per_viewer(:mine, version: :marks) { |ids, _viewer| ids.to_h { |id| [id, I18n.locale.to_s] } }
    })
    @personal = Castellan.app do
      resource resource, at: "posts"
      authenticate { |env| Integer(env["HTTP_AUTHORIZATION"]) }
    end
    available = I18n.available_locales
    I18n.available_locales = %i[en fr]
    read = ->(locale) { I18n.with_locale(locale) { personal(1) } }
    found = %i[en fr].map { |locale| Array.new(4) { read.call(locale) }.last }
    silent { assert_equal found, %i[en fr].map(&read) }
    assert_equal %w[en fr], found.map { |response| response[2][/"mine":"(\w+)"/, 1] }
    refute_equal(*found.map { |response| response[1]["etag"] })
  ensure
    I18n.available_locales = available
    self.class.send(:remove_const, :TranslatedResource)
  end

  def test_another_role_has_documents_of_its_own
    url = another_database("behind")
    Record.connection_handler.establish_connection(url, owner_name: Record, role: :reading)
    ActiveRecord::Base.connected_to(role: :reading) do
      assert_includes get[2], "behind"
      Record.transaction { assert_equal [200, 1], [get.first, Post.count], "the transaction goes on without counters" }
    end
    silent { refute_includes get[2], "behind" }
  ensure
    Record.connection_handler.remove_connection_pool(Record.name, role: :reading)
  end

  def test_another_role_has_values_of_its_own
    3.times { refute mine?(1) }
    url = another_database("behind")
    Elsewhere.establish_connection(url)
    Castellan::Versions::ExactVersions.new(Elsewhere).install(%w[posts marks])
    Elsewhere.connection.execute("INSERT INTO marks VALUES (1, 1)")
    Record.connection_handler.establish_connection(url, owner_name: Record, role: :reading)
    ActiveRecord::Base.connected_to(role: :reading) do
      3.times { assert mine?(1) }
      PG.connect(url) { |other| other.exec("DELETE FROM marks") }
      refute mine?(1)
    end
    3.times { refute mine?(1) }
  ensure
    Record.connection_handler.remove_connection_pool(Record.name, role: :reading)
    Elsewhere.remove_connection
  end

  def test_another_connection_of_the_model_is_noticed
    url = another_database("moved")
    Post.establish_connection(url)
    assert_includes get[2], "moved"
  ensure
    Post.remove_connection
  end

  def test_another_database_of_all_models_is_noticed
    url = another_database("moved")
    other = Castellan::Versions::ExactVersions.new(Record)
    [nil, other].each do |counted|
      Record.establish_connection(url)
      counted&.install(%w[posts marks], notify: true)
      2.times { assert_includes get[2], "moved" }
      Record.establish_connection(@url)
      2.times { refute_includes get[2], "moved" }
    end
  ensure
    Record.establish_connection(@url)
  end

  def test_arguments_of_the_application_lead_to_the_first_database
    connections = Castellan::Versions::RawConnections.for(Record)
    2.times { assert_equal({ dbname: "a" }, connections.listened({ dbname: "a" })) }
    Record.establish_connection(another_database("moved"))
    connections.listened({ dbname: "a" })
    assert_nil connections.place
    Process.stub(:pid, 0) { assert_equal "", connections.place, "another process listens to nothing yet" }
  ensure
    Record.establish_connection(@url)
  end

  def test_another_schema_of_all_models_is_noticed
    @other.exec("CREATE SCHEMA attic; CREATE TABLE attic.posts (LIKE posts INCLUDING ALL); INSERT INTO attic.posts (title) VALUES ('old')")
    Record.establish_connection("#{@url}?schema_search_path=attic,public")
    2.times { assert_includes get[2], "old" }
    Record.establish_connection(@url)
    silent { refute_includes get[2], "old" }
  ensure
    Record.establish_connection(@url)
  end

  private

  # @return [String] the URL of a database without counters
  def another_database(title)
    Castellan::TestServers.postgres_url.tap do |url|
      PG.connect(url) do |other|
        other.exec("CREATE TABLE posts (id serial PRIMARY KEY, title text, sent_at timestamptz); " \
                   "CREATE TABLE marks (viewer_id int, post_id int)")
        other.exec_params("INSERT INTO posts (title) VALUES ($1)", [title])
      end
    end
  end

  def resource_class = PostResource
  def marked_resource_class = MarkedResource
  def source = Record
  def disconnect = Record.remove_connection
  def run_sql(sql) = Record.connection.execute(sql)

  def connect
    Record.establish_connection(@url)
    Post.table_name = "posts"
    Post.reset_column_information
    Record.connection_pool.release_connection
  end

  def rolled_back
    Record.transaction do
      yield
      raise ActiveRecord::Rollback
    end
    Record.connection_pool.release_connection # it remembers its search path, so versions are read for it anew
  end

  def in_shop(&)
    @other.exec("CREATE SCHEMA IF NOT EXISTS shop; CREATE TABLE IF NOT EXISTS shop.posts (LIKE public.posts); " \
                "DELETE FROM shop.posts; INSERT INTO shop.posts VALUES (1, 'of the shop', now())")
    Record.connection.schema_search_path = "shop"
    yield
  ensure
    Record.connection.schema_search_path = "public"
    Record.connection_pool.disconnect
  end

  def with_plain_html
    before = ActiveSupport::JSON::Encoding.escape_html_entities_in_json
    ActiveSupport::JSON::Encoding.escape_html_entities_in_json = false
    yield
  ensure
    ActiveSupport::JSON::Encoding.escape_html_entities_in_json = before
  end
end

class NotifiedHitsOnSequelTest < Minitest::Test
  include NotifiedHitsContract

  def test_the_time_zone_is_noticed
    before = get[2]
    Sequel.application_timezone = :local
    { "Etc/GMT+5" => "2025-12-31T19:00:00", "Etc/GMT-9" => "2026-01-01T09:00:00" }.each do |zone, expected|
      with_env("TZ" => zone) { 2.times { assert_includes get[2], expected } }
    end
    Sequel.application_timezone = :utc
    with_env("TZ" => "Etc/GMT+5") { 2.times { assert_includes get[2], "2026-01-01T00:00:00" } }
    Sequel.application_timezone = nil
    assert_equal before, get[2]
  ensure
    Sequel.application_timezone = nil
  end

  def test_a_hit_takes_no_connection_of_the_pool
    before = get
    taken, over = Array.new(2) { Queue.new }
    holders = Array.new(@db.pool.max_size) { Thread.new { @db.synchronize { [taken << true, over.pop] } } }
    holders.each { taken.pop }
    assert_equal before, get
  ensure
    over.close
    holders.each(&:join)
  end

  private

  def source = @db
  def disconnect = @db.disconnect
  def run_sql(sql) = @db.run(sql)
  def rolled_back(&) = @db.transaction(rollback: :always, &)
  def connect = @db = Sequel.connect(@url)

  def resource_class
    posts = Class.new(Sequel::Model(@db[:posts]))
    self.class.send(:remove_const, :Post) if self.class.const_defined?(:Post, false)
    self.class.send(:remove_const, :PostResource) if self.class.const_defined?(:PostResource, false)
    self.class.const_set(:Post, posts)
    self.class.const_set(:PostResource, Class.new(Castellan::Resource) {
      model posts
      type "posts"
      attributes :title, :sent_at
      cache :notified
    })
  end

  def marked_resource_class
    marks = @db[:marks]
    self.class.send(:remove_const, :MarkedResource) if self.class.const_defined?(:MarkedResource, false)
    self.class.const_set(:MarkedResource, Class.new(self.class::PostResource) {
      per_viewer(:mine, version: :marks) { |_ids, viewer| marks.where(viewer_id: viewer).select_map(:post_id) }
    })
  end
end
