# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "active_record"
require "sequel"
require "castellan/doctor"

# Trials on PostgreSQL, where a failed statement aborts its transaction.
class TrialOnPostgresTest < Minitest::Test
  include Castellan::OwnDatabases

  class Base < ActiveRecord::Base
    self.abstract_class = true
    self.table_name_prefix = "trial_"
  end

  class Keeper < Base
    has_many :room_keys
  end

  class RoomKey < Base
    belongs_to :keeper
  end

  def own_databases = [Base, @database]

  def setup
    needs :postgres
    url = Castellan::TestServers.postgres_url
    @executor = ActiveRecord.async_query_executor
    ActiveRecord.async_query_executor = :global_thread_pool
    ActiveRecord::Base.asynchronous_queries_tracker.start_session # as Rails' executor does
    Base.establish_connection(url)
    Base.connection.create_table(:trial_keepers)
    Base.connection.create_table(:trial_room_keys) { |table| table.belongs_to(:keeper) && table.integer(:door) }
    @database = Sequel.connect(url)
    4.times { |door| RoomKey.create!(keeper: Keeper.create!, door: door) }
  end

  def teardown
    return unless @database

    forget(@database)
    Base.connection.drop_table(:trial_room_keys)
    Base.connection.drop_table(:trial_keepers)
    forget(Base)
    ActiveRecord::Base.asynchronous_queries_tracker.finalize_session
    ActiveRecord.async_query_executor = @executor
  end

  def test_writes_of_a_trial_are_rolled_back
    work = lambda do
      RoomKey.create!(keeper_id: 1, door: 9)
      @database[:trial_room_keys].insert(keeper_id: 1, door: 9)
      Keeper.order(:id).map { |keeper| keeper.room_keys.where(door: 0..3).last&.door }
    end
    trial = Castellan::Doctor.try(finding_of(&work), &work)
    assert_predicate trial, :accepted?, trial.to_s
    assert_equal 3, trial.before.queries - trial.after.queries
    assert_equal 2, RoomKey.where(door: 9).count # from the watched run
  end

  def test_a_trial_of_sequel_loads_only_the_record_that_the_new_association_has
    RoomKey.insert_all!(Array.new(300) { |door| { keeper_id: Keeper.first.id, door: door } })
    self.class.const_set(:Key, keys = Class.new(Sequel::Model(@database[:trial_room_keys])))
    self.class.const_set(:Owner, Class.new(Sequel::Model(@database[:trial_keepers])))
    Owner.one_to_many(:room_keys, class: keys, key: :keeper_id)
    work = -> { Owner.order(:id).all.map { |owner| owner.room_keys_dataset.order(:door).last.id } }
    trial = Castellan::Doctor.try(finding_of(&work), &work)
    assert_equal [true, 5, 2], [trial.accepted?, trial.before.queries, trial.after.queries], trial.to_s
    assert_operator trial.after.allocated_objects, :<, 2 * trial.before.allocated_objects, trial.to_s
  ensure
    %i[Key Owner].each { |name| self.class.send(:remove_const, name) if self.class.const_defined?(name, false) }
  end

  # As the gem sequel_pg does, for the datasets of PostgreSQL.
  module FastLoads
    def all(&block)
      records = []
      fetch_rows(sql) { |row| records << row_proc.call(row) }
      post_load(records)
      block ? records.each(&block) : records
    end
  end

  def test_records_that_a_dataset_loads_by_a_method_of_its_own_are_counted_and_preloaded
    self.class.const_set(:Owner, Class.new(Sequel::Model(@database[:trial_keepers])))
    self.class.const_set(:Key, keys = Class.new(Sequel::Model(@database[:trial_room_keys].with_extend(FastLoads))))
    keys.many_to_one(:keeper, class: Owner)
    work = -> { Key.order(:id).all.map { |key| key.keeper.id } }
    finding = finding_of(&work)
    assert_equal 4, finding.parent_count
    assert_match(/\Aadd \.eager\(:keeper\) where/, finding.fix)
    trial = Castellan::Doctor.try(finding, &work)
    assert_equal [true, 5, 2], [trial.accepted?, trial.before.queries, trial.after.queries], trial.to_s
  ensure
    %i[Key Owner].each { |name| self.class.send(:remove_const, name) if self.class.const_defined?(name, false) }
  end

  def test_records_of_load_async_are_preloaded
    work = -> { RoomKey.order(:id).load_async.map { |key| key.keeper.id } }
    trial = Castellan::Doctor.try(finding_of(&work), &work)
    assert_equal [true, 5, 2], [trial.accepted?, trial.before.queries, trial.after.queries], trial.to_s
  end

  def test_a_failed_statement_in_a_trial_does_not_abort_the_outer_transaction
    work = -> { Keeper.order(:id).map { |keeper| keeper.room_keys.order(:id).last.door } }
    finding = finding_of(&work)
    declaration = finding.declaration.merge(scope: 'where("nowhere = 1")')
    Base.transaction do
      trial = Castellan::Doctor.try(Castellan::Finding.new(**finding.to_h, declaration: declaration), &work)
      assert_includes trial.to_s, "does not help: with the fix the work fails: ActiveRecord::StatementInvalid: PG::UndefinedColumn"
      assert_equal [0, 1, 2, 3], work.call
    end
  end

  private

  def finding_of(&work) = Castellan::Detect.watch(slow_ms: nil, &work).max_by(&:count)
end
