# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"

# A table with every type of PostgreSQL: whatever a client filters, sorts, pages or writes by is answered with 2xx or 4xx, and what
# was written can be read.
module PostgresTypesContract
  include JournalRequests

  COLUMNS = {
    a_smallint: %w[smallint 7], a_bigint: %w[bigint 7], a_numeric: ["numeric", "7.5"], a_price: ["numeric(8,2)", "7.5"],
    a_real: ["real", "7.5"], a_double: ["double precision", "7.5"], a_money: ["money", "7.5"], a_boolean: %w[boolean t],
    a_char: ["char(3)", "ab"], a_varchar: ["varchar(20)", "text"], a_text: %w[text text], a_citext: %w[citext Text],
    a_name: %w[name text], one_char: ['"char"', "a"], a_bytea: %w[bytea text], a_date: %w[date 2026-01-31],
    a_time: ["time", "12:00:00"], a_timetz: ["timetz", "12:00:00+02"], a_timestamp: ["timestamp", "2026-01-31 12:00:00"],
    a_timestamptz: ["timestamptz", "2026-01-31 12:00:00+02"], an_interval: ["interval", "1 day 02:03:04"],
    a_uuid: %w[uuid c0de0000-0000-4000-8000-000000000000], an_inet: %w[inet 10.0.0.1/8], a_cidr: %w[cidr 10.0.0.0/8],
    a_macaddr: %w[macaddr 08:00:2b:01:02:03], a_bit: ["bit(4)", "1010"], a_varbit: %w[varbit 101], a_json: ["json", '{"a":1}'],
    a_jsonb: ["jsonb", '{"a":1}'], an_xml: %w[xml <a/>], a_hstore: ["hstore", "a=>1"], a_ltree: %w[ltree a.b], a_point: ["point", "(1,2)"],
    a_line: ["line", "{1,2,3}"], an_lseg: ["lseg", "[(1,2),(3,4)]"], a_box: ["box", "(3,4),(1,2)"], a_path: ["path", "((1,2),(3,4))"],
    a_polygon: ["polygon", "((1,2),(3,4))"], a_circle: ["circle", "<(1,2),3>"], an_int4range: ["int4range", "[1,5)"],
    a_numrange: ["numrange", "[1,5)"], a_tsrange: ["tsrange", "[2026-01-01,2026-01-02)"],
    a_tstzrange: ["tstzrange", "[2026-01-01,2026-01-02)"], a_daterange: ["daterange", "[2026-01-01,2026-01-02)"],
    a_tsvector: ["tsvector", "'a' 'b'"], a_tsquery: ["tsquery", "'a' & 'b'"], integers: ["integer[]", "{1,2}"], texts: ["text[]", "{a,b}"],
    jsons: ["json[]", "{\"{}\"}"], numbers: ["numeric[]", "{1.5}"], days: ["date[]", "{2026-01-31}"], a_mood: %w[castellan_mood good],
    a_domain: %w[castellan_percent 7], a_composite: ["castellan_pair", "(1,a)"], an_oid: %w[oid 7], an_lsn: ["pg_lsn", "0/7"]
  }.freeze
  TEXTS = ["", "7", "-1", "1e9", "a,b", "[1,2)", "(1,2)", "{1}", "2026-01-31", "10.0.0.1", "<a/>", "\u00e9'\"\\", "true", "NaN"].freeze
  VALUES = [nil, true, 7, -1, 1.5, 10**30, "", "7", "text", "[1,2)", "(1,2)", "2026-01-31", "12:00:00", "10.0.0.1", "1010", "{1,2}",
            [], [1, "a"], [[1], [2]], {}, { "a" => 1 }, { "x" => 1, "y" => [nil] }, "é'\"\\", "\\xff", "x" * 300].freeze

  # The table, its model and its resources, once for each ORM.
  def self.declare(journal)
    return journal.models::AllTypes if journal.models.const_defined?(:AllTypes, false)

    prepare(journal)
    journal.models.const_set(:AllTypes, Module.new).tap do |found|
      model = if journal.is_a?(SequelJournal)
                Class.new(Sequel::Model(journal.models::DB[:castellan_things]))
              else
                Class.new(journal.models::Base) { self.table_name = "castellan_things" }
              end
      found.const_set(:Thing, model)
      found.const_set(:Resources, COLUMNS.keys.to_h { |column| [column, resource(model, column)] }.freeze)
      found.const_set(:Every, Class.new(Castellan::Resource) do
        model model
        type "things"
        attributes(*COLUMNS.keys)
      end)
    end
  end

  def self.prepare(journal)
    %w[citext hstore ltree].each { |name| journal.run("CREATE EXTENSION IF NOT EXISTS #{name}") }
    journal.run("CREATE TYPE castellan_mood AS ENUM ('good', 'bad')")
    journal.run("CREATE DOMAIN castellan_percent AS integer CHECK (VALUE BETWEEN 0 AND 100)")
    journal.run("CREATE TYPE castellan_pair AS (number integer, word text)")
    columns = COLUMNS.map { |name, (type, _)| "#{name} #{type}" }
    journal.run("CREATE TABLE castellan_things (id bigserial PRIMARY KEY, #{columns.join(", ")})")
  end

  # Each declaration that boot accepts: what it refuses, no client can ask for.
  def self.resource(thing, column)
    type = "#{column.to_s.tr("_", "-")}s"
    base = Class.new(Castellan::Resource) do
      model thing
      type type
      attribute column
      writable column
      page :cursor, size: 2, max_size: 5
    end
    %i[filter sort].inject(base) do |resource, word|
      more = Class.new(resource) { public_send(word, column) }
      more.checked_rows && more
    rescue Castellan::DeclarationError => error
      raise unless error.message.match?(/cannot be (?:compared|sorted)/)

      resource
    end
  end

  def setup
    @types = PostgresTypesContract.declare(journal)
    journal.run("DELETE FROM castellan_things")
    values = COLUMNS.map { |_, (type, text)| "'#{text.gsub("'", "''")}'::#{type}" }
    3.times { |id| journal.run("INSERT INTO castellan_things VALUES (#{id + 1}, #{values.join(", ")})") }
    journal.run("INSERT INTO castellan_things (id) VALUES (4)")
    journal.run("SELECT setval('castellan_things_id_seq', 100)")
    types = @types
    @app = serve do |_|
      types::Resources.each do |column, resource|
        resource resource, at: column
        resource Class.new(resource) { page size: 2 }, at: "#{column}-by-number"
      end
      resource types::Every, at: "things"
    end
  end

  def test_rows_of_every_type_are_what_the_models_say
    assert_equal 4, ids("/things").size
    verification = Castellan.verify { @types::Every.render }
    assert_empty verification.differences
  end

  def test_filters_of_every_type_are_answered
    filtered = @types::Resources.select { |_, resource| resource.definition.filters.any? }.keys
    assert_operator filtered.size, :>, 15
    filtered.product(TEXTS, [nil, "eq", "not", "gt", "lte", "like", "null"]).each do |column, text, operator|
      query = Rack::Utils.build_query("filter[#{column}]#{"[#{operator}]" if operator}" => text)
      answered(get("/#{column}?#{query}").first, query)
    end
  end

  def test_orders_and_cursors_of_every_type_are_answered
    sorted = @types::Resources.select { |_, resource| resource.definition.sorts.any? }.keys
    assert_operator sorted.size, :>, 35
    sorted.product(%w[+ -]).each do |column, direction|
      response, document = get("/#{column}?sort=#{direction.delete("+")}#{column}")
      answered(response, column)
      answered(get("/#{column}-by-number?sort=#{direction.delete("+")}#{column}&page[number]=2").first, column)
      following = document.dig("links", "next")
      answered(get(following).first, column) if following
    end
  end

  def test_writes_of_every_type_are_answered_and_can_be_read
    @types::Resources.each_key do |column|
      type = "#{column.to_s.tr("_", "-")}s"
      VALUES.each do |value|
        response, document = send_data("POST", "/#{column}", type: type, attributes: { column => value })
        answered(response, [column, value])
        assert_equal document["data"], get("/#{column}/#{document["data"]["id"]}").last["data"] if response.status == 201
        answered(send_data("PATCH", "/#{column}/1", type: type, id: "1", attributes: { column => value }).first, [column, value])
      end
      answered(get("/#{column}").first, column)
    end
    answered(get("/things").first, "things")
  end

  # The database keeps a text of the type json as it is, and the gem json 3 refuses a name that occurs twice.
  def test_a_name_may_occur_twice_in_a_column_of_the_type_json
    journal.run(%(UPDATE castellan_things SET a_json = '{"a":1,"a":2}'))
    things = Class.new(@types::Every) { writable :a_text }
    app = Rack::MockRequest.new(serve do |_|
      pages title: "Things"
      operations
      resource things, at: "things"
    end)
    operation = { op: "update", data: { type: "things", id: "1", attributes: { a_text: "new" } } }
    written = app.post("/operations", input: JSON.generate("atomic:operations" => [operation]),
                                      "CONTENT_TYPE" => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"')
    assert_equal "new", JSON.parse(written.body, allow_duplicate_key: true).dig("atomic:results", 0, "data", "attributes", "a_text")
    assert_equal 200, app.get("/things/1", "HTTP_ACCEPT" => "text/html").status
    assert_equal "new", things.document(@types::Thing.where(id: 1)).as_json["data"].dig(0, "attributes", "a_text")
    assert_empty Castellan.verify { things.render }.differences
  end

  private

  # All problems are shown at once.
  def teardown
    assert_nil @problems&.join("\n")
  end

  def answered(response, what)
    return if [200, 201, 400, 409, 422].include?(response.status)

    (@problems ||= []) << "#{what.inspect[0, 60]}: #{response.status} #{response.body[0, 300]}"
  end

  # An error that is raised is a 500 in any server.
  def request(method, path, **rest)
    super
  rescue StandardError => error
    place = error.backtrace.grep(%r{lib/castellan}).first
    Rack::MockResponse.new(500, {}, [JSON.generate("error" => "#{error.class}: #{error.message.b[0, 160].inspect} #{place}")])
  end
end

[%i[active_record ActiveRecord], %i[sequel Sequel]].each do |orm, name|
  Object.const_set("PostgresTypesOn#{name}Test", Class.new(Minitest::Test) do
    include PostgresTypesContract

    define_method(:journal) do
      needs :postgres
      Journal.public_send(orm, :postgres)
    end
  end)
end
