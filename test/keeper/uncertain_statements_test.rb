# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/keeper"

# Documents of scopes with SQL of their own are never older than the data, whatever the SQL reads and however the data is written.
class UncertainStatementsTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Guest < Base
    self.table_name = "guests"
  end

  class GuestResource < Castellan::Resource
    model Guest
    attributes :name
    cache :exact
  end

  SCOPES = [
    "id IN (SELECT x.id FROM guests AS x, rooms AS y WHERE y.guest_id = x.id)",
    "name <> E'\\'' AND id IN (SELECT guest_id FROM rooms) AND name <> E'\\''",
    "$$'$$ <> name AND id IN (SELECT guest_id FROM rooms) AND $$'$$ <> name",
    "id > 0 /* ' */ AND id IN (SELECT guest_id FROM rooms) /* ' */",
    "\"has room\"(id)",
    "id IN (SELECT guest_id FROM taken)"
  ].freeze
  WRITES = [
    "INSERT INTO rooms VALUES (2)",
    "ALTER TABLE rooms DISABLE TRIGGER ALL; DELETE FROM rooms; ALTER TABLE rooms ENABLE TRIGGER ALL",
    "SET session_replication_role = replica; INSERT INTO rooms VALUES (1); RESET session_replication_role",
    "ALTER TABLE guests ALTER COLUMN name TYPE text USING upper(name)"
  ].freeze

  SCHEMA = <<~SQL
    CREATE TABLE guests (id bigint PRIMARY KEY, name text);
    CREATE TABLE rooms (guest_id bigint);
    CREATE VIEW taken AS SELECT guest_id FROM rooms;
    CREATE FUNCTION "has room"(bigint) RETURNS boolean STABLE LANGUAGE sql AS
      'SELECT EXISTS (SELECT 1 FROM rooms WHERE guest_id = $1)';
    INSERT INTO guests VALUES (1, 'Ada'), (2, 'Grace');
    INSERT INTO rooms VALUES (1);
  SQL

  def setup
    needs :postgres
    super
    Base.establish_connection(Castellan::TestServers.postgres_url)
    Base.connection.execute(SCHEMA)
    Guest.reset_column_information
    versions = Castellan::Versions::ExactVersions.new(Base)
    versions.install(%w[guests rooms])
    @keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
  end

  def teardown
    Base.remove_connection
    super
  end

  def test_no_document_is_older_than_the_data
    fresh = [nil, *WRITES].map do |write|
      Base.connection.execute(write) if write
      SCOPES.map do |scope|
        expected = render(scope, nil)
        2.times { assert_equal expected, render(scope, @keeper), "#{scope} after #{write.inspect}" }
        expected
      end
    end
    assert_operator fresh.uniq.size, :>=, 3
  end

  private

  def render(scope, keeper) = GuestResource.document(Guest.where(scope).order(:id), keeper: keeper).to_json
end
