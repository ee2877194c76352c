# frozen_string_literal: true

require "test_helper"

class RowsTest < Minitest::Test
  def test_it_is_required_without_an_orm
    script = <<~RUBY
      require "castellan/rows"
      p [defined?(ActiveRecord), defined?(Sequel)]
      Castellan::Rows.for(42) rescue puts $!.message
    RUBY
    output = run_ruby("-w", "-e", script)
    assert_includes output, "[nil, nil]"
    assert_includes output, "42 cannot be read as rows: give an ActiveRecord model"
  end

  def test_a_table_without_a_model_is_read_before_active_record_has_connected
    script = <<~RUBY
      require "active_record"
      require "castellan"
      require "sqlite3"
      SQLite3::Database.new(ARGV.first).execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
      class NoteResource < Castellan::Resource
        model :notes
        attributes :text
      end
      NoteResource.render rescue puts $!.message
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ARGV.first)
      puts NoteResource.render
    RUBY
    Tempfile.create do |file|
      error, document = run_ruby("-e", script, file.path).lines(chomp: true).last(2)
      assert_includes error, "ActiveRecord is not connected, Sequel has 0 databases"
      assert_equal %({"data":[]}), document
    end
  end

  def test_a_key_in_a_statement_is_replaced
    key = Castellan::Rows::Association::OwnerKey
    sql = %(SELECT "r"."id" FROM "r" WHERE "a"."user_id" = #{key.value(:integer)} AND "a"."name" = '1847362915x')
    assert_equal %("a"."user_id"), key.column(sql)
    assert_includes key.replace(sql, %("u"."id")), %("a"."user_id" = "u"."id" AND "a"."name" = '1847362915x')
    assert_raises(Castellan::DeclarationError) { key.replace("SELECT 1", "x") }
  end

  def test_ids_are_sent_as_one_value
    assert_equal %([1,2]), Castellan::Rows::Dialect.for(:sqlite).bind([1, 2])
    assert_equal %("x" IN (SELECT value FROM json_each(?))), Castellan::Rows::Dialect.for(:sqlite).among(%("x"), "integer")
    assert_equal %("x" = ANY($1::bigint[])), Castellan::Rows::Dialect.for(:postgres).among(%("x"), "bigint")
  end

  def test_a_list_of_one_id_is_an_equality
    texts = %i[postgres sqlite].map { |name| Castellan::Rows::Dialect.for(name) }
                               .map { |dialect| dialect.single(dialect.among(%("x"), "uuid")) }
    assert_equal [%("x" = ($1::uuid[])[1]), %("x" = json_extract(?, '$[0]'))], texts
  end
end
