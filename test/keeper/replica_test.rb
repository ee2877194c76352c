# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "active_record"
require "sequel"
require "castellan/keeper"

# Documents kept from a primary and from a replica that is behind: a copy of the primary's file, renewed when it catches up.
class ReplicaTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Note < Base
    self.table_name = "notes"
  end

  class NoteResource < Castellan::Resource
    model Note
    attributes :text
    cache :exact
  end

  def setup
    super
    @directory = Dir.mktmpdir
    @primary = Sequel.sqlite(path("primary"))
    @primary.run("CREATE TABLE notes (id integer PRIMARY KEY, text varchar(20))")
    @primary.run("INSERT INTO notes VALUES (1, 'old')")
    Castellan::Versions::ExactVersions.new(@primary).install(%w[notes])
    replicate
  end

  def teardown
    forget(@primary)
    FileUtils.rm_rf(@directory)
    super
  end

  def test_roles_of_active_record_never_mix
    ActiveRecord::Base.configurations = configurations
    Base.connects_to(database: { writing: :notes_primary, reading: :notes_replica })
    versions = Castellan::Versions::ExactVersions.new(Base)
    assert_each_is_exact(versions, NoteResource, primary: ->(&block) { Base.connected_to(role: :writing, &block) },
                                                 replica: ->(&block) { Base.connected_to(role: :reading, &block) }) do
      %i[writing reading].each { |role| Base.connected_to(role: role) { Base.connection_pool.disconnect! } }
    end
  ensure
    %i[writing reading].each { |role| Base.connected_to(role: role) { Base.remove_connection } }
    ActiveRecord::Base.configurations = {}
  end

  def test_servers_of_sequel_never_mix
    database = Sequel.sqlite(path("primary"), servers: { read_only: { database: path("replica") } })
    resource = Class.new(Castellan::Resource) do
      model database[:notes]
      type "notes"
      attributes :text
      cache :exact
    end
    self.class.const_set(:DatasetResource, resource)
    versions = Castellan::Versions::ExactVersions.new(database)
    assert_each_is_exact(versions, resource, replica: ->(&block) { block.call }) { database.disconnect }
  ensure
    self.class.send(:remove_const, :DatasetResource)
    forget(database)
  end

  def test_shards_of_sequel_share_no_bytes_of_a_serializer
    database = Sequel.sqlite(path("primary"), servers: { other: { database: path("replica") } })
    database.extension(:server_block)
    versions = Castellan::Versions::ExactVersions.new(database)
    home = versions.address
    database.with_server(:other) { refute_equal home, versions.address }
    assert_equal home, versions.address
  ensure
    forget(database)
  end

  private

  def path(name) = File.join(@directory, "#{name}.sqlite3")

  def replicate
    FileUtils.rm_f(Dir["#{path("replica")}*"])
    @primary.run("VACUUM INTO '#{path("replica")}'")
  end

  def configurations
    %w[primary replica].to_h { |name| ["notes_#{name}", { adapter: "sqlite3", database: path(name), replica: name == "replica" }] }
                       .then { |databases| { ActiveRecord::ConnectionHandling::DEFAULT_ENV.call => databases } }
  end

  # Every side answers with its own rows, from the one store, before the replica catches up and after.
  def assert_each_is_exact(versions, resource, **sides)
    keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
    read = ->(side) { Array.new(2) { sides.fetch(side).call { resource.render(keeper: keeper) } } }
    sides.each_key { |side| assert_all(read.call(side), "old") }
    @primary.run("UPDATE notes SET text = 'new'")
    sides.each_key { |side| assert_all(read.call(side), side == :primary ? "new" : "old") }
    yield
    replicate
    sides.each_key { |side| assert_all(read.call(side), "new") }
  end

  def assert_all(documents, text) = assert_equal([true, true], documents.map { |document| document.include?(text) }, documents.inspect)
end
