# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"

# Both adapters have the interface that the linter checks, and no other public methods.
class RowsLinterTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Pen < Base; end

  def setup
    @configurations = ["sqlite3::memory:", (Castellan::TestServers.postgres_url if Castellan::TestServers.available?(:postgres))].compact
  end

  def teardown
    Base.remove_connection
    super
  end

  def test_the_adapter_of_active_record_has_no_defect
    @configurations.each do |configuration|
      Base.establish_connection(configuration)
      Base.connection.create_table(:pens, force: true) { |table| table.string(:colour) && table.datetime(:bought_at) }
      Pen.reset_column_information
      4.times { |index| Pen.create!(colour: "c#{index}") }
      adapter = Castellan::Rows::ActiveRecordRows.new(Pen)
      assert_equal [], Castellan::Rows::Linter.new(adapter).defects
      assert_no_more(adapter)
    end
  end

  def test_the_adapter_of_sequel_has_no_defect
    @configurations.each do |configuration|
      database = Sequel.connect(configuration.sub("sqlite3::memory:", "sqlite:/"))
      database.create_table!(:pens) do
        primary_key :id
        String :colour
        Time :bought_at
      end
      4.times { |index| database[:pens].insert(colour: "c#{index}") }
      [Class.new(Sequel::Model(database[:pens])), database[:pens]].each do |object|
        adapter = Castellan::Rows.for(object)
        assert_equal [], Castellan::Rows::Linter.new(adapter).defects
        assert_no_more(adapter)
      end
    ensure
      forget(database)
    end
  end

  def test_defects_are_named
    broken = Object.new
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Rows::Linter.new(broken).call }
    assert_includes error.message, "Object#fetch - is missing"
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:pens)
    wrong = Class.new(Castellan::Rows::ActiveRecordRows) { def at(_path) = nil }.new(Pen)
    assert_includes Castellan::Rows::Linter.new(wrong).defects.first, "#at - of no path is nil, not the adapter"
  end

  private

  def assert_no_more(adapter)
    public = [adapter.class, *adapter.class.ancestors.select { |one| one.name.to_s.start_with?("Castellan") }]
    names = public.uniq.flat_map { |one| one.public_instance_methods(false) }.uniq
    assert_equal Castellan::Rows::Linter::METHODS.sort, names.sort
  end
end
