# frozen_string_literal: true

require "test_helper"
require "action_controller"
require "active_record"
require "fileutils"
require "rack/mock_request"
require "sequel"
require "tmpdir"

# A document, cached or not, is of the shard that the application is connected to.
class ShardsTest < Minitest::Test
  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Notice < Record; end

  class NoticeResource < Castellan::Resource
    model Notice
    type "notices"
    attributes :title
    cache :exact, expires_in: 60
  end

  def setup
    @directory = Dir.mktmpdir("castellan-shards")
    @before = ActiveRecord::Base.configurations
    one, two = %w[one two].map { |name| { adapter: "sqlite3", database: File.join(@directory, name) } }
    ActiveRecord::Base.configurations = { ActiveRecord::ConnectionHandling::DEFAULT_ENV.call => { "one" => one, "two" => two } }
    Record.connects_to(shards: { default: { writing: :one }, two: { writing: :two } })
    Record.connection.create_table(:notices) { |table| table.string(:title) }
    @versions = Castellan::Versions::ExactVersions.new(Record)
    @versions.install(%w[notices])
    Record.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    FileUtils.cp(File.join(@directory, "one"), File.join(@directory, "two"))
  end

  def teardown
    on_two { Record.connection_pool.disconnect! }
    Record.connection_handler.remove_connection_pool(Record.name, role: :writing, shard: :two)
    forget(Record)
    ActiveRecord::Base.configurations = @before
    FileUtils.remove_entry(@directory)
  end

  # The versions in a store are shared by all shards.
  def test_a_document_of_one_shard_is_not_served_for_another
    Notice.create!(title: "of one")
    on_two { Notice.create!(title: "of two") }
    [@versions, Castellan::Versions::CommitVersions.new(Castellan::Store::MemoryStore.new)].each do |versions|
      keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
      2.times { assert_equal(["of one", "of two"], [title(keeper), on_two { title(keeper) }]) }
      refute_equal NoticeResource.document(keeper: keeper).etag, on_two { NoticeResource.document(keeper: keeper).etag }
    end
  end

  # Rails' ShardSelector has switched back when the server reads the body.
  def test_a_rack_body_is_of_the_shard_where_its_document_was_made
    Notice.create!(title: "of one")
    on_two { Notice.create!(title: "of two") }
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
    [nil, keeper].each do |cache|
      tagged, *bodies = on_two { Array.new(2) { NoticeResource.document(keeper: cache) } << NoticeResource.document(keeper: cache).stream }
      on_two { tagged.headers }
      [tagged, *bodies].each { |body| assert_includes body.enum_for(:each).to_a.join, "of two" }
      assert_equal "of one", title(cache)
    end
    assert_equal "of two", on_two { title(keeper) }
  end

  # Otherwise bytes of one shard could be cached under the key of the other.
  def test_a_document_is_written_on_the_shard_where_it_was_made
    Notice.create!(title: "of one")
    on_two { Notice.create!(title: "of two") }
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
    [nil, keeper].each do |cache|
      document, tagged = on_two { Array.new(2) { NoticeResource.document(keeper: cache) } }
      etag = on_two { tagged.etag }
      assert_equal [etag, 200], [document.etag, document.status]
      [document, tagged].each { |one| assert_includes one.to_json, "of two" }
      assert_equal ["of one", "of two"], [title(cache), on_two { title(cache) }]
    end
  end

  def test_a_controller_renders_a_document_on_the_shard_where_it_was_made
    Notice.create!(title: "of one")
    on_two { Notice.create!(title: "of two") }
    %i[json jsonapi].each do |format|
      keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
      make = -> { on_two { NoticeResource.document(keeper: keeper) } }
      controller = Class.new(ActionController::Base) do
        include Castellan::Controller

        define_method(:index) { render format => make.call }
      end
      2.times { assert_includes Rack::MockResponse[*controller.action(:index).call(Rack::MockRequest.env_for("/"))].body, "of two" }
      assert_equal ["of one", "of two"], [title(keeper), on_two { title(keeper) }]
    end
  end

  def test_a_body_in_a_role_without_a_database_raises_the_error_of_active_record
    document = NoticeResource.document
    error = assert_raises(ActiveRecord::ActiveRecordError) { ActiveRecord::Base.connected_to(role: :nowhere) { document.each { |_| nil } } }
    assert_match(/nowhere/, error.message)
  end

  def test_a_dataset_of_a_server_is_refused_and_the_block_is_read
    database = Sequel.connect("sqlite:/", servers: { two: {} })
    database.extension(:server_block)
    [nil, :two].each { |server| fill(database, server) }
    model = self.class.const_set(:Served, Class.new(Sequel::Model(database[:notices])))
    resource = self.class.const_set(:ServedResource, Class.new(Castellan::Resource)) # without a name nothing is kept
    resource.class_exec do
      model model
      type "notices"
      attributes :title
      cache :exact, expires_in: 60
    end
    error = assert_raises(Castellan::ConfigurationError) { resource.render(model.dataset.server(:two)) }
    assert_includes error.message, "with_server(:two)"
    elsewhere = Sequel::Model(database[:notices].server(:two))
    model.many_to_one :copy, class: elsewhere, key: :id
    related = Class.new(resource) { has_one :copy }
    error = assert_raises(Castellan::ConfigurationError) { related.render(query: { "include" => "copy" }) }
    assert_includes error.message, "with_server(:two)"
    assert_includes resource.render, "of default"
    assert_includes database.with_server(:two) { resource.render }, "of two"
    assert_includes database.with_server(:two) { resource.document.stream }.each.to_a.join, "of two"
    versions = Castellan::Versions::CommitVersions.new(Castellan::Store::MemoryStore.new)
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
    kept = -> { resource.document(keeper: keeper) }
    both = Array.new(2) { [kept.call.to_json, database.with_server(:two) { kept.call.to_json }] }
    assert_equal [%w[default two]] * 2, both.map { |texts| texts.map { |text| text[/of (\w+)/, 1] } }
    refute_equal kept.call.etag, database.with_server(:two) { kept.call.etag }
  ensure
    %i[Served ServedResource].each { |name| self.class.send(:remove_const, name) }
    forget(database)
  end

  # With the plugin sharding, a record reads its associations from its own server.
  def test_a_record_of_another_server_is_refused
    with_sharded_models do |database, notice|
      resource = notices_of(notice) { attribute(:copies, columns: %i[id]) { |row| row.id } }
      record, list = notice.server(:two).first, notice.server(:two).all
      [record, list].each do |given|
        error = assert_raises(Castellan::ConfigurationError) { resource.render(given) }
        assert_includes error.message, "a record of server :two"
        assert_includes error.message, "DB.with_server(:two)"
        assert_includes database.with_server(:two) { resource.render(given) }, "of two"
      end
      assert_includes resource.render(notice.all), "of default"
    ensure
      self.class.send(:remove_const, :NoticesOfDatabase)
    end
  end

  def test_a_serializer_reads_the_associations_of_records_from_their_server
    with_sharded_models do |database, notice|
      database.with_server(:two) { database[:notices].insert(title: "another of two") }
      serializer = self.class.const_set(:ShardedSerializer, Class.new { include Castellan::Serializer })
      serializer.set_type(:notice)
      serializer.attribute(:copy) { |record| record.copy&.title }
      serializer.attribute(:copies) { |record| record.copies.map(&:title) }
      read = ->(records) { serializer.new(records).serializable_hash[:data].map { |one| one[:attributes].values } }
      assert_equal [["of two", ["of two"]], ["another of two", ["another of two"]]], read.call(notice.server(:two).order(:id).all)
      mixed = [*notice.all, *notice.server(:two).order(:id).all]
      assert_equal [["of default", ["of default"]], ["of two", ["of two"]], ["another of two", ["another of two"]]], read.call(mixed)
    ensure
      self.class.send(:remove_const, :ShardedSerializer)
    end
  end

  # The extension arbitrary_servers takes the options of a database instead of a name.
  def test_a_server_that_is_not_listed_has_its_own_documents
    database = Sequel.connect("sqlite:/", keep_reference: false, servers: {})
    database.extension(:arbitrary_servers, :server_block)
    resource = notices_of(database[:notices]) { cache :exact }
    versions = Castellan::Versions::ExactVersions.new(database)
    files = %w[one two].map { |name| { database: File.join(@directory, "arbitrary-#{name}") } }
    files.each { |file| database.with_server(file) { versions.install(%w[notices]) } if fill(database, file) }
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
    2.times do
      texts = files.map { |file| database.with_server(file) { resource.document(keeper: keeper).to_json } }
      assert_equal(%w[one two], texts.map { |text| text[/arbitrary-(\w+)/, 1] })
    end
  ensure
    self.class.send(:remove_const, :NoticesOfDatabase)
    database&.disconnect
  end

  # An application may load the extension in development as well, where it has no replicas.
  def test_a_database_without_servers_may_have_the_extension
    database = Sequel.connect("sqlite:/", keep_reference: false)
    database.extension(:server_block)
    fill(database, nil)
    resource = notices_of(Class.new(Sequel::Model(database[:notices]))) { writable :title }
    client = Rack::MockRequest.new(Castellan.app { resource resource })
    assert_includes client.get("/notices").body, "of default"
    written = JSON.generate(data: { type: "notices", id: "1", attributes: { title: "written" } })
    assert_equal 200, client.patch("/notices/1", :input => written, "CONTENT_TYPE" => "application/vnd.api+json").status
    assert_includes database.with_server(:default) { resource.render }, "written"
  ensure
    self.class.send(:remove_const, :NoticesOfDatabase)
    database&.disconnect
  end

  private

  def on_two(&block) = Record.connected_to(shard: :two, role: :writing, &block)
  def title(keeper) = JSON.parse(NoticeResource.document(keeper: keeper).to_json)["data"][0]["attributes"]["title"]

  def notices_of(rows, &declaration)
    resource = self.class.const_set(:NoticesOfDatabase, Class.new(Castellan::Resource)) # without a name nothing is kept
    resource.class_exec do
      model rows
      type "notices"
      attributes :title
    end
    resource.tap { |one| one.class_exec(&declaration) }
  end

  def with_sharded_models
    database = Sequel.connect("sqlite:/", servers: { two: {} }, keep_reference: false)
    database.extension(:server_block)
    [nil, :two].each { |server| fill(database, server) }
    notice = Class.new(Sequel::Model(database[:notices]))
    notice.plugin(:sharding)
    notice.many_to_one :copy, class: notice, key: :id
    notice.one_to_many :copies, class: notice, key: :id
    yield database, notice
  ensure
    database&.disconnect
  end

  def fill(database, server)
    database.with_server(server || :default) do
      database.create_table(:notices) do
        primary_key :id
        String :title
      end
      database[:notices].insert(title: "of #{server || :default}")
    end
  end
end
