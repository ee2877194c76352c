# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "active_record"
require "castellan/keeper"

# Values that an association's scope reads besides the database (the tenant, the time) are part of the key of a kept document.
class AssociationScopeTest < Minitest::Test
  DIRECTORY = Dir.mktmpdir
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection adapter: "sqlite3", database: File.join(DIRECTORY, "scopes.sqlite3")
  end

  class Note < Base; end

  class Writer < Base
    has_many :notes, -> { where(tenant: Thread.current[:castellan_test_tenant]) }
  end

  class NoteResource < Castellan::Resource
    model Note
    attributes :text
  end

  class WriterResource < Castellan::Resource
    model Writer
    attributes :name
    has_many :notes
    cache :exact
  end

  def setup
    connection = Base.connection
    connection.create_table(:writers, force: true) { |t| t.string :name }
    connection.create_table(:notes, force: true) do |t|
      t.references :writer
      t.integer :tenant
      t.string :text
    end
    writer = Writer.create!(name: "Ada")
    [1, 2].each { |tenant| Note.create!(writer_id: writer.id, tenant: tenant, text: "of #{tenant}") }
    versions = Castellan::Versions::ExactVersions.new(Base)
    versions.install(%w[writers notes])
    @keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
  end

  def teardown
    Thread.current[:castellan_test_tenant] = nil
  end

  def test_a_kept_document_is_of_one_tenant
    assert_apart(WriterResource)
  end

  private

  def assert_apart(resource)
    2.times do
      [1, 2].each { |tenant| assert_equal written(resource, tenant, nil), written(resource, tenant, @keeper) }
    end
  end

  def written(resource, tenant, keeper)
    Thread.current[:castellan_test_tenant] = tenant
    resource.render(include: :notes, keeper: keeper)
  end
end
