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
