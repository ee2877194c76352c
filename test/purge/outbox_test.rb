# frozen_string_literal: true

require "test_helper"
require "sequel"

# The outbox asks for triggers once a second, and goes on without an answer.
class PurgeOutboxTest < Minitest::Test
  def test_while_the_pool_has_no_connection_what_is_known_counts_for_a_minute
    Dir.mktmpdir do |directory|
      database = Sequel.connect("sqlite://#{directory}/a.sqlite3", max_connections: 1, pool_timeout: 0, keep_reference: false)
      database.create_table(:tags) { primary_key :id }
      outbox = Castellan::Purge::Outbox.new(database)
      outbox.install("tags" => [["id"]])
      assert_empty outbox.without_triggers(%w[tags])
      held(database) do
        assert_raises(Sequel::PoolTimeout) { Castellan::Purge::Outbox.new(database).without_triggers(%w[tags]) }
        later(2) { assert_empty outbox.without_triggers(%w[tags]) }
      end
      Castellan::Purge::Outbox.new(database).uninstall(%w[tags])
      later(60) { assert_empty outbox.without_triggers(%w[tags]) }
      later(63) { assert_equal %w[tags], outbox.without_triggers(%w[tags]) }
      database.disconnect
    end
  end

  # Any role may use the function of the triggers for tables of its own.
  def test_a_table_of_another_role_runs_no_code_with_the_rights_of_the_owner
    needs :postgres
    database = Sequel.connect(Castellan::TestServers.postgres_url, keep_reference: false)
    database.run("CREATE TABLE tags (id int PRIMARY KEY)")
    Castellan::Purge::Outbox.new(database).install("tags" => [["id"]])
    database.run("CREATE ROLE purge_stranger; CREATE SCHEMA strange AUTHORIZATION purge_stranger")
    database.transaction do
      database.run("SET LOCAL ROLE purge_stranger; CREATE TABLE strange.seen (who text); CREATE TYPE strange.kind AS ENUM ('x'); " \
                   "CREATE FUNCTION strange.shown(strange.kind) RETURNS json LANGUAGE sql AS $$ " \
                   "INSERT INTO strange.seen VALUES (current_user) RETURNING '1'::json $$; " \
                   "CREATE CAST (strange.kind AS json) WITH FUNCTION strange.shown(strange.kind); " \
                   "CREATE TABLE strange.things (kind strange.kind); CREATE TRIGGER noted AFTER INSERT ON strange.things " \
                   "FOR EACH ROW EXECUTE FUNCTION castellan_note_purge('things', 'kind'); INSERT INTO strange.things VALUES ('x')")
    end
    assert_equal %w[purge_stranger], database[Sequel[:strange][:seen]].select_map(:who)
  ensure
    database&.run("DROP OWNED BY purge_stranger CASCADE; DROP ROLE purge_stranger")
    database&.disconnect
  end

  private

  def later(seconds, &)
    @now ||= Castellan::Clock.monotonic_ns
    now = @now + (seconds * 1_000_000_000)
    Castellan::Clock.stub(:monotonic_ns, -> { now }, &)
  end

  def held(database)
    taken, done = Array.new(2) { Queue.new }
    thread = Thread.new { database.synchronize { taken << true && done.pop } }
    taken.pop
    yield
  ensure
    done << true
    thread.join
  end
end
