# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "castellan/doctor"
require_relative "../detect/fixes/active_record_zoo"
require_relative "../detect/fixes/sequel_zoo"

# Trials of fixes that ask at once for what a loop asks for one by one.
class AtOnceTest < Minitest::Test
  include Castellan::OwnDatabases

  Zoo = ActiveRecordZoo
  Doctor = Castellan::Doctor

  def own_databases = [ActiveRecordZoo::Base, SequelZoo::DB]

  def test_look_ups_are_answered_from_one_statement
    { -> { [1, 2, 3].map { |id| Zoo::Keeper.find(id).name } } => 3,
      -> { %w[none gold].map { |one| Zoo::Mane.find_by(colour: one)&.id } } => 2,
      -> { [1, 2, 99].map { |id| Zoo::RoomKey.where(keeper_id: id).order(:id).map(&:door) } } => 3,
      -> { [1, 2, 99].map { |id| Zoo::RoomKey.where(keeper_id: id).exists? } } => 3,
      -> { [1, 2].map { |id| Zoo::RoomKey.where(keeper_id: id, lost: false).pluck(:door) } } => 2,
      -> { [1, 2].map { |id| Zoo::Base.connection.select_value("SELECT name FROM zoo_keepers WHERE id = #{id}") } } => 2 }
      .each { |work, queries| assert_answered(work, queries, 1) }
  end

  def test_calculations_are_answered_from_one_that_is_grouped
    assert_answered(-> { Zoo::Keeper.order(:id).map { |keeper| keeper.room_keys.where(lost: false).count } }, 7, 2)
    assert_answered(-> { Zoo::Keeper.order(:id).map { |keeper| keeper.room_keys.average(:door).to_s } }, 7, 2)
    assert_answered(-> { [true, false].map { |lost| Zoo::RoomKey.where(lost: lost).count } }, 2, 1)
    assert_answered(-> { [1, 99].map { |id| [Zoo::RoomKey.where(keeper_id: id).sum(:door)] } }, 2, 1)
  end

  def test_calculations_of_nothing_are_answered_as_well
    assert_answered(-> { [98, 99].map { |id| Zoo::RoomKey.where(keeper_id: id).count } }, 2, 1)
    assert_answered(-> { [98, 99].map { |id| Zoo::RoomKey.where(keeper_id: id).maximum(:door).to_s } }, 2, 1)
    assert_answered(-> { [98, 99].map { |id| SequelZoo::RoomKey.where(keeper_id: id).count } }, 2, 1)
    assert_answered(-> { [98, 99].map { |id| SequelZoo::RoomKey.where(keeper_id: id).max(:door).to_s } }, 2, 1)
  end

  def test_sequel_is_answered_as_well
    { -> { [1, 2, 3].map { |id| SequelZoo::Keeper[id].name } } => 3, -> { [1, 2].map { |id| SequelZoo::Keeper.first(id: id).name } } => 2,
      -> { [1, 99].map { |id| SequelZoo::RoomKey.where(keeper_id: id).count } } => 2,
      -> { [1, 99].map { |id| SequelZoo::RoomKey.where(keeper_id: id).empty? } } => 2,
      -> { [1, 2].map { |id| SequelZoo::RoomKey.where(keeper_id: id).order(:id).select_map(:door) } } => 2 }
      .each { |work, queries| assert_answered(work, queries, 1) }
    assert_answered(-> { SequelZoo::Keeper.order(:id).all.map { |keeper| keeper.room_keys_dataset.where(lost: false).count } }, 7, 2)
  end

  def test_only_what_differs_in_the_value_alone_is_collected
    finding = Struct.new(:remedy, :parent_location, :fingerprint).new({ together: "keeper_id" }, "a.rb:1", "select * from keys")
    texts = [1, 2].product([7, 8]).map { |id, door| "SELECT * FROM keys WHERE keeper_id = #{id} AND door = #{door}" }
    texts << "SELECT * FROM keys WHERE keeper_id = 3 AND door = 8"
    asked = []
    Doctor::Trial::AtOnce.new(finding, texts.map { |text| [text, []] }).answer(texts.first, ->(text, _binds) { text }) { |sql| asked << sql and [[1, { door: 7 }]] }
    assert_includes asked.join, "keeper_id IN (1, 2) AND door = 7"
  end

  def test_of_a_duplicate_the_first_answer_is_kept
    trial = assert_answered(-> { Array.new(3) { Zoo::Keeper.find_by(name: "keeper 1").id } }, 3, 1)
    assert_match(/; each first answer was kept\z/, trial.to_s)
    assert_answered(-> { Array.new(3) { SequelZoo::Keeper.first(name: "keeper 1").id } }, 3, 1)
  end

  def test_values_that_come_from_the_answer_before_cannot_be_collected
    finding = rolled_back { Castellan::Detect.watch(slow_ms: nil, &chain) }.first
    assert_equal :n_plus_one, finding.kind
    trial = Doctor.try(finding, &chain)
    assert_equal [false, nil], [trial.accepted?, trial.same]
    assert_includes trial.to_s, "not tried: each value stands in the answer to the one before"
  end

  def test_the_keys_of_records_that_were_loaded_together_are_there_beforehand
    Zoo::RoomKey.transaction do
      Zoo::RoomKey.update_all("door = keeper_id + 1")
      work = lambda do
        lost = true
        Zoo::Keeper.order(:id).map { |keeper| keeper.room_keys.where(lost: lost).order(:id).first&.door }
      end
      assert_answered(work, 7, 2)
      raise ActiveRecord::Rollback
    end
  end

  def test_a_condition_that_stands_twice_is_one
    assert_answered(-> { [1, 2, 3].map { |id| Zoo::Keeper.where(id: id).find_by!(id: id).name } }, 3, 1)
  end

  private

  # Follows the one whose id is the door.
  def chain
    lambda do
      Zoo::RoomKey.update_all("door = id + 1")
      id = 1
      Array.new(3) { Zoo::RoomKey.find(id).tap { |key| id = key.door }.id }
    end
  end

  def assert_answered(work, before, after)
    finding = Castellan::Detect.watch(slow_ms: nil, &work).max_by(&:count)
    trial = Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, "#{finding}\n#{trial}"
    assert_equal [before, after, true], [trial.before.queries, trial.after.queries, trial.same?], finding.fix
    assert_match(/the same(?: bytes)?; |is the same; /, trial.to_s)
    trial
  end

  def rolled_back
    result = nil
    Zoo::Base.transaction do
      result = yield
      raise ActiveRecord::Rollback
    end
    result
  end
end
