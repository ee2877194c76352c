# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "drafts"

# Compares both encoders on a real PG::Result with the same values as Ruby objects.
class SerializePostgresTest < Minitest::Test
  include Castellan::Drafts

  TYPES = {
    a_text: [:text, "text", "'ä\"\\\n<&>\u2028' || chr(127) || chr(1)"], a_boolean: [:boolean, "boolean", "i % 2 = 0"],
    an_integer: [:integer, "bigint", "i::bigint * 1000000007"], a_float: [:float, "double precision", "sqrt(i) * power(10, i % 40 - 20)"],
    a_real: [:float, "real", "i / 3.0"], a_decimal: [:decimal, "numeric(20,4)", "i / 7.0"],
    a_bare_decimal: [:decimal, "numeric", "i * 1e15 / 8"],
    a_date: [:date, "date", "date '2024-02-27' + i"],
    a_time: [:datetime, "timestamp", "timestamp '2024-02-29 23:59:59.123456' + i * interval '1 h'"],
    a_zoned_time: [:datetime, "timestamptz", "timestamptz '1999-12-31 23:59:59.9+02' + i * interval '1 s'"],
    some_json: [:json, "jsonb", "jsonb_build_object('i', i, 'html', '</script>')"], an_uuid: [:text, "uuid", "md5(i::text)::uuid"],
    a_null: [:text, "text", "NULLIF('x', 'x')"]
  }.freeze

  def setup
    needs :postgres
    require "pg"
    @connection = PG.connect(Castellan::TestServers.postgres_url)
  end

  def teardown
    @connection&.close
  end

  def test_every_type_is_the_same_from_the_result_and_from_ruby_objects
    result, other = Array.new(2) { @connection.exec("SELECT i::bigint AS id, #{columns} FROM generate_series(1, 60) i") }
    coders = { id: :integer, **TYPES.transform_values(&:first) }
    objects = typed(other)
    assert_includes objects[0].map(&:class), Time
    %i[json rails rails_html].each do |escape|
      bodies = [result, result.values, objects].flat_map { |rows| bodies(draft("things", coders, rows), escape:) }
      assert_equal 1, bodies.uniq.size, "#{escape}: #{bodies.uniq.map { |body| body[0, 1200] }.join("\n")}"
      assert_equal 60, JSON.parse(bodies.first)["data"].size
    end
  end

  def test_the_values_equal_those_of_the_database
    result = @connection.exec("SELECT i::bigint AS id, sqrt(i)::float8 AS root, (i / 7.0)::numeric(20,4) AS part, i % 2 = 0 AS even, " \
                              "timestamp '2024-01-01' + i * interval '1 ms' AS at FROM generate_series(1, 300) i")
    things = draft("things", { id: :integer, root: :float, part: :decimal, even: :boolean, at: :datetime }, result)
    JSON.parse(bodies(things).last)["data"].each_with_index do |thing, index|
      attributes = thing["attributes"]
      assert_equal Math.sqrt(index + 1), attributes["root"]
      assert_in_delta (index + 1) / 7.0, attributes["part"].to_f, 0.0001
      assert_equal (index + 1).even?, attributes["even"]
      assert_equal Time.utc(2024, 1, 1, 0, 0, 0, (index + 1) * 1000).strftime("%FT%T.%LZ"), attributes["at"]
    end
  end

  def test_relationships_between_results
    comments = @connection.exec("SELECT i AS id, (i % 7) + 1 AS post_id, NULLIF(i % 5, 0) AS author_id, 'c' || i AS body " \
                                "FROM generate_series(1, 50) i")
    people = draft("people", { id: :integer, name: :text },
                   @connection.exec("SELECT i AS id, 'p' || i AS name FROM generate_series(1, 3) i"))
    comment = draft("comments", { id: :integer, post_id: :integer, author_id: :integer, body: :text }, comments,
                    edges: [edge(:author, InColumn.new(2), type: "people", to: people)])
    tags = @connection.exec("SELECT i % 9 + 1, i FROM generate_series(1, 20) i")
    posts = draft("posts", { id: :integer }, @connection.exec("SELECT i FROM generate_series(10, 1, -1) i"),
                  edges: [edge(:comments, Pairs.new(comments, 1, 0), many: true, type: "comments", to: comment),
                          edge(:tags, Pairs.new(tags, 0, 1), many: true, type: "tags")])
    %i[json_api nested].each { |format| assert_equal 1, bodies(posts, format:).uniq.size }
    document = JSON.parse(bodies(posts).first)
    assert_equal %w[6 13 20 27 34 41 48], document["data"][3]["relationships"]["comments"]["data"].map { |link| link["id"] }
    assert_equal 50, document["included"].count { |record| record["type"] == "comments" }
    assert_equal 3, document["included"].count { |record| record["type"] == "people" }
  end

  def test_text_ids_link_rows
    groups = draft("groups", { id: :text }, @connection.exec("SELECT md5(i::text)::uuid FROM generate_series(1, 5) i"))
    rows = @connection.exec("SELECT 'u' || i, string_agg(md5(j::text)::uuid::text, ',') " \
                            "FROM generate_series(1, 4) i, generate_series(i, 6) j GROUP BY i ORDER BY i")
    users = draft("users", { id: :text }, rows,
                  edges: [edge(:groups, InColumn.new(1), many: true, type: "groups", to: groups)])
    assert_equal 1, bodies(users).uniq.size
    assert_equal [5, 6],
                 [JSON.parse(bodies(users).first)["included"].size,
                  JSON.parse(bodies(users).first)["data"][0]["relationships"]["groups"]["data"].size]
  end

  def test_a_result_is_read_in_place
    skip "needs the C extension (rake compile)" unless Castellan::Serialize.native?

    assert Castellan::Native.reads_results?
    result = @connection.exec("SELECT i AS id, 'name ' || i AS name, now()::timestamp AS at FROM generate_series(1, 1000) i")
    plan, rows = build(draft("things", { id: :integer, name: :text, at: :datetime }, result))
    template = Castellan::Serialize::Template.new(plan)
    encode = -> { Castellan::Serialize::NativeEncoder.encode(rows, template) }
    encode.call
    assert_operator allocated_objects(&encode), :<, 20
  end

  def test_another_client_encoding_is_converted
    @connection.exec("SET client_encoding TO LATIN1")
    things = draft("things", { id: :integer, name: :text }, @connection.exec("SELECT 1, 'é'".encode("ISO-8859-1")))
    assert_equal ['{"data":[{"type":"things","id":"1","attributes":{"name":"é"}}]}'], bodies(things).uniq
  end

  def test_a_cleared_result_raises_without_a_crash
    result = @connection.exec("SELECT 1")
    plan, rows = build(draft("things", { id: :integer }, result))
    template = Castellan::Serialize::Template.new(plan)
    result.clear
    encoders.each { |encoder| assert_raises(PG::Error) { encoder.encode(rows, template) } }
  end

  def test_any_object_but_a_result_raises_without_a_crash
    [Object.new, "rows", 7, @connection, Thread.current, Random.new].each do |rows|
      plan, row_set = build(draft("things", { id: :integer }, rows))
      template = Castellan::Serialize::Template.new(plan)
      encoders.each { |encoder| assert_raises(NoMethodError) { encoder.encode(row_set, template) } }
    end
  end

  def test_infinity_and_nan_raise_with_the_name_of_the_record
    { "'infinity'::timestamp" => :datetime, "'-infinity'::date" => :date, "'NaN'::float8" => :float, "'Infinity'::float8" => :float,
      "'NaN'::numeric" => :decimal, "'2024-01-01 BC'::date" => :date }.each do |sql, coder|
      thing = draft("things", { id: :integer, value: coder }, @connection.exec("SELECT 7, #{sql}"))
      messages = encoders.map { |encoder| assert_raises(Castellan::EncodingError) { encode(thing, encoder:) }.message }
      assert_equal 1, messages.uniq.size
      assert_includes messages.first, 'things "7", member "value"'
    end
  end

  def test_empty_results
    posts = draft("posts", { id: :integer }, @connection.exec("SELECT 1 WHERE false"),
                  edges: [edge(:tags, Pairs.new(@connection.exec("SELECT 1, 2 WHERE false"), 0, 1), many: true, type: "tags")])
    assert_equal ['{"data":[]}'], bodies(posts).uniq
  end

  private

  def encoders = [Castellan::Serialize::RubyEncoder, (Castellan::Serialize::NativeEncoder if Castellan::Serialize.native?)].compact

  def bodies(root, **options) = encoders.map { |encoder| encode(root, encoder:, **options).body }

  def columns = TYPES.map { |name, (_, type, sql)| "(#{sql})::#{type} AS #{name}" }.join(", ")

  # Returns Ruby objects, except for JSON, which no driver decodes to a distinct class.
  def typed(result)
    texts = result.values
    json = TYPES.keys.index(:some_json) + 1
    result.type_map = PG::BasicTypeMapForResults.new(@connection).tap { |map| map.default_type_map = PG::TypeMapAllStrings.new }
    result.values.each_with_index { |row, number| row[json] = texts[number][json] }
  end
end
