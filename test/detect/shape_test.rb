# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/detect"

# Two models, or two ORMs, may send the same SQL.
class ShapeTest < Minitest::Test
  class Pebble < ActiveRecord::Base; end

  class Gravel < ActiveRecord::Base
    self.table_name = "pebbles"
  end

  TEXT = "select pebbles.* from pebbles where pebbles.id = ? limit ?"

  def test_the_model_that_the_statement_names_comes_first
    assert_equal [Pebble, Gravel], models("ShapeTest::Pebble Load")
    assert_equal [Gravel, Pebble], models("ShapeTest::Gravel Load")
    assert_equal [Gravel, Pebble], models("ShapeTest::Gravel Exists?")
  end

  def test_a_statement_without_a_name_matches_all_models_of_its_table
    [nil, "SQL"].each { |name| assert_equal [Gravel, Pebble], models(name).sort_by(&:name) }
  end

  def test_a_statement_of_sequel_is_not_one_of_active_record
    assert_empty models(Castellan::Instrument::SequelInstrument::NAME)
  end

  def test_a_model_without_a_connection_has_no_known_columns
    absent = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    ActiveRecord::ConnectionNotEstablished.new.tap { |error| absent.define_singleton_method(:primary_key) { raise error } }
    assert_equal "", Castellan::Detect::ActiveRecordModels.primary_key(absent)
  end

  def test_a_cursor_has_the_shape_of_its_query
    text = "select users.* from users order by id"
    ["declare page cursor for #{text}", "declare sequel_cursor no scroll cursor without hold for #{text}"].each do |declared|
      assert_equal text, Castellan::Detect::Shape.of(declared).fingerprint
    end
    ["fetch forward ? from page", "close page", "declare page cursor for execute x"].each { |other| assert_nil Castellan::Detect::Shape.of(other) }
  end

  def test_a_statement_that_only_sleeps_is_reported_as_slow
    ["select pg_sleep(?)", "select ? from pg_sleep(?)"].each { |text| refute_nil Castellan::Detect::Shape.of(text), text }
    ["select pg_advisory_lock(?)", "select * from pg_class"].each { |text| assert_nil Castellan::Detect::Shape.of(text), text }
  end

  private

  def models(name) = Castellan::Detect::Shape.of(TEXT, name).models
end
