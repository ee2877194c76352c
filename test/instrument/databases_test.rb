# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/drivers"
require "sqlite3"
require "sequel"
require "castellan/detect"

class DatabasesTest < Minitest::Test
  Databases = Castellan::Instrument::Databases

  def setup
    @databases = Array.new(2) { Sequel.sqlite }
    @databases.each do |database|
      database.create_table(:items) { [primary_key(:id), String(:name)] }
      database[:items].import([:name], [["one"], ["two"], ["three"]])
    end
  end

  def teardown
    @databases.each { |database| [database.disconnect, Sequel.synchronize { Sequel::DATABASES.delete(database) }] }
    super
  end

  def test_equal_statements_on_two_databases_are_not_duplicates
    assert_empty(watch { @databases.each { |database| database[:items].count } })
    assert_empty(watch { @databases.each { |database| database[:items].insert(name: "four") } })
    @databases.each(&:freeze)
    assert_empty(watch { @databases.each { |database| database[:items].count } })
  end

  def test_repeated_queries_in_two_databases_are_one_finding
    assert_equal([[:duplicate, 4]], watch { @databases.each { |database| 2.times { database[:items].count } } })
    assert_equal([[:n_plus_one, 6]], watch { @databases.each { |database| (1..3).each { |id| database[:items].first(id: id) } } })
    assert_equal([[:write_loop, 4]], watch { @databases.each { |database| 2.times { database[:items].insert(name: "x") } } })
    assert_equal([[:duplicate, 2]], watch { 2.times { @databases.last[:items].count } })
  end

  def test_one_query_on_a_database_is_not_a_repetition_in_another
    first, second = @databases
    assert_equal([[:duplicate, 2]], watch { first[:items].count && 2.times { second[:items].count } })
    assert_equal([[:duplicate, 2]], watch { 2.times { first[:items].count } && second[:items].count })
    assert_equal([[:n_plus_one, 3]], watch { first[:items].first(id: 1) && (1..3).each { |id| second[:items].first(id: id) } })
  end

  def test_many_databases_are_distinguished
    many = Array.new(30) { SQLite3::Database.new(":memory:").tap { |database| database.execute("CREATE TABLE items (id INTEGER)") } }
    assert_empty(watch { many.each { |database| database.execute("SELECT count(*) FROM items") } })
  ensure
    many&.each(&:close)
  end

  def test_a_tally_counts_databases_separately
    tally = Castellan::Detect::Tally.new
    Castellan::Instrument.record(tally) { @databases.each { |database| database[:items].count } }
    assert_equal [1, 1], tally.groups.map(&:count)
    assert_equal 1, tally.groups.map { |group| group.shape.fingerprint }.uniq.size
    assert(tally.groups.all? { |group| group.shape.sequel? })
  end

  def test_connections_to_one_file_are_one_database
    Dir.mktmpdir do |directory|
      connections = Array.new(2) { SQLite3::Database.new(File.join(directory, "one.sqlite3")) }
      connections.first.execute("CREATE TABLE things (id INTEGER)")
      assert_equal([[:duplicate, 2]], watch { connections.each { |connection| connection.execute("SELECT count(*) FROM things") } })
      connections.each(&:close)
    end
  end

  def test_the_numbers_start_again_after_many_databases
    first = Array.new(Databases::MOST) { |number| Databases.name("pg", Object.new) { [:one, number] } }
    names = Array.new(Databases::MOST + 2) { |number| Databases.name("pg", Object.new) { [:other, number] } }
    assert_equal Databases::MOST, first.uniq.size
    assert_equal names.last, Databases.name("pg", Object.new) { [:other, Databases::MOST + 1] }
    assert_equal [1, 2, 1, 1], ["pg", "pg 2", "User 2", nil].map { |name| Databases.number(name) }
  end

  private

  def watch(&block) = Castellan::Detect.watch(slow_ms: nil, &block).map { |finding| [finding.kind, finding.count] }
end
