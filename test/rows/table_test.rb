# frozen_string_literal: true

require "test_helper"

# A resource may name a table or view. Runs in its own process, because this one has many databases.
class TableTest < Minitest::Test
  RESOURCE = <<~RUBY
    class TotalResource < Castellan::Resource
      model :totals
      id :name
      attributes :amount
      attribute(:loud) { |row| (row.respond_to?(:name) ? row.name : row[:name]).upcase }
      sort :amount
    end
    class RowResource < Castellan::Resource
      model :rows
      attributes :name
    end
    puts TotalResource.render(sort: "-amount", fields: { totals: %i[amount] }), TotalResource.render(id: "b"), RowResource.render(id: 1)
    puts RowResource.document(page: nil).rendering.tables.inspect
  RUBY
  TABLES = ["CREATE TABLE rows (id integer PRIMARY KEY, name varchar, amount integer)",
            "INSERT INTO rows (name, amount) VALUES ('a', 1), ('b', 5), ('a', 2)",
            "CREATE VIEW totals AS SELECT name, SUM(amount) AS amount FROM rows GROUP BY name"].freeze
  ACTIVE_RECORD = <<~RUBY.freeze
    require "active_record"
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    #{TABLES}.each { |sql| ActiveRecord::Base.connection.execute(sql) }
  RUBY
  SEQUEL = <<~RUBY.freeze
    require "sequel"
    DB = Sequel.sqlite
    #{TABLES}.each { |sql| DB.run(sql) }
  RUBY
  EXPECTED = [
    { "data" => [{ "type" => "totals", "id" => "b", "attributes" => { "amount" => 5 } },
                 { "type" => "totals", "id" => "a", "attributes" => { "amount" => 3 } }] },
    { "data" => { "type" => "totals", "id" => "b", "attributes" => { "amount" => 5, "loud" => "B" } } },
    { "data" => { "type" => "rows", "id" => "1", "attributes" => { "name" => "a" } } }, ["rows"]
  ].freeze

  { "active_record" => ACTIVE_RECORD, "sequel" => SEQUEL }.each do |name, connection|
    define_method("test_a_table_and_a_view_are_read_by_name_with_#{name}") do
      assert_equal EXPECTED, printed(connection + RESOURCE).lines.map { |line| JSON.parse(line) }
    end
  end

  def test_a_table_name_that_two_orms_could_have_raises
    program = "#{ACTIVE_RECORD}#{SEQUEL}\nbegin; Castellan::Rows.for(:rows); rescue Castellan::DeclarationError => e; puts e.message; end"
    assert_includes printed(program), "ActiveRecord is connected, Sequel has 1 databases): give an ActiveRecord model"
  end

  private

  def printed(program) = run_ruby("-rcastellan", "-rlogger", "-e", program)
end
