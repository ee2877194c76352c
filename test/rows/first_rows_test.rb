# frozen_string_literal: true

require "test_helper"
require "active_record"
require "json"
require "sequel"

# On PostgreSQL, to-one associations whose rows no index orders are read for all rows of a large page at once. The
# result is what each record's own read returns: with ties, NULLs, default scopes, STI, through and several steps.
class FirstRowsTest < Minitest::Test
  CLIENTS = 130

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Visit < Base
    belongs_to :place, class_name: "FirstRowsTest::Place", optional: true
  end

  class LateVisit < Visit; end

  class Place < Base
    default_scope { where(closed: false) }
    has_one :sign, -> { order(:label) }, class_name: "FirstRowsTest::Sign"
  end

  class Sign < Base; end

  class Ledger < Base
    belongs_to :client, class_name: "FirstRowsTest::Client"
    has_many :visits, class_name: "FirstRowsTest::Visit", primary_key: :client_id, foreign_key: :client_id
  end

  class VisitView < Base
    self.table_name = "visit_views"
    self.inheritance_column = nil
  end

  class Client < Base
    has_one :any_visit, class_name: "FirstRowsTest::Visit"
    has_one :best_visit, -> { order(rank: :desc) }, class_name: "FirstRowsTest::Visit"
    has_one :worst_visit, -> { where.not(rank: nil).order(Arel.sql("rank ASC NULLS FIRST, length(note)")) }, class_name: "FirstRowsTest::Visit"
    has_one :late_visit, -> { order(:rank) }, class_name: "FirstRowsTest::LateVisit"
    has_one :recent_visit, -> { where("visits.rank < ?", Time.now.year).order(:rank) }, class_name: "FirstRowsTest::Visit"
    has_one :second_visit, -> { order(:id).offset(1) }, class_name: "FirstRowsTest::Visit"
    has_one :viewed_visit, -> { order(:rank) }, class_name: "FirstRowsTest::VisitView"
    has_one :ledger, class_name: "FirstRowsTest::Ledger"
    has_one :ledger_visit, -> { order(:rank) }, through: :ledger, source: :visits
    has_one :place_visited, -> { order(rank: :desc) }, class_name: "FirstRowsTest::Visit"
    belongs_to :home, class_name: "FirstRowsTest::Place", optional: true
    has_one :last_entry, -> { order(position: :desc) }, class_name: "FirstRowsTest::Entry"
  end

  class Entry < Base; end

  TABLES = <<~SQL
    CREATE TABLE clients (id serial PRIMARY KEY, name varchar, home_id integer);
    CREATE TABLE places (id serial PRIMARY KEY, name varchar, closed boolean NOT NULL);
    CREATE TABLE signs (id serial PRIMARY KEY, place_id integer, label varchar);
    CREATE TABLE visits (id serial PRIMARY KEY, client_id integer, place_id integer, rank integer, note varchar, type varchar);
    CREATE INDEX ON visits (client_id);
    CREATE TABLE ledgers (id serial PRIMARY KEY, client_id integer);
    CREATE TABLE entries (id serial PRIMARY KEY, client_id integer, position integer);
    CREATE INDEX ON entries (client_id, position);
    CREATE VIEW visit_views AS SELECT * FROM visits;
  SQL
  PATHS = { any: "any_visit.note", best: "best_visit.note", best_rank: "best_visit.rank", worst: "worst_visit.note",
            late: "late_visit.note", recent: "recent_visit.note", second: "second_visit.note", viewed: "viewed_visit.note",
            through: "ledger_visit.note", place: "place_visited.place.name", sign: "home.sign.label",
            visited_sign: "place_visited.place.sign.label", home: "home.name", entry: "last_entry.position" }.freeze

  class VisitResource < Castellan::Resource
    model Visit
    attributes :note
  end

  class ClientResource < Castellan::Resource
    model Client
    attributes :name
    PATHS.each { |name, path| attribute(name, from: path) }
    has_one :best_visit, :any_visit, resource: VisitResource
  end

  def self.world
    @world ||= new(nil).send(:build)
  end

  def self.truths
    @truths ||= {}
  end

  def setup
    needs :postgres
    self.class.world
  end

  def test_every_client_of_the_table
    statement = check(Client.order(:id))
    assert_includes statement, "DISTINCT ON"
    refute_includes statement, "castellan_page"
  end

  def test_clients_of_a_condition
    statement = check(Client.where("clients.id > 3").order(name: :desc, id: :asc))
    assert_includes statement, "WITH castellan_rows"
    assert_includes statement, '"visits"."client_id" IN (SELECT castellan_rows.'
  end

  def test_large_pages_keep_their_limit_and_offset
    assert_includes check(Client.order(:name, :id).limit(110).offset(7)), "castellan_page"
    assert_includes check(Client.order(:id).limit(105)), "castellan_page"
  end

  def test_an_unordered_scope_keeps_the_order_of_the_database
    assert_includes check(Client.where("clients.id % 2 = 0")), "castellan_page"
  end

  def test_small_pages_and_one_client_read_a_subquery_for_each_row
    [Client.order(:id).limit(20), Client.where(id: 7).limit(1)].each { |scope| refute_includes check(scope), "DISTINCT ON" }
    assert_equal truth(Client.find(9)), attributes(JSON.parse(ClientResource.render(id: 9))["data"])
  end

  def test_an_index_in_the_associations_order_is_used_row_by_row
    statement = check(Client.order(:id))
    refute_match(/DISTINCT ON \("entries"/, statement)
    assert_match(/FROM "entries" WHERE .* LIMIT 1\)/, statement)
    refute_match(/DISTINCT ON \("visit_views"/, statement)
  end

  def test_linkage_is_the_first_row
    data = JSON.parse(ClientResource.render(Client.order(:id), include: %i[best_visit]))
    data["data"].zip(Client.order(:id)) do |object, client|
      %w[best_visit any_visit].each do |name|
        assert_equal [client.public_send(name)&.id&.to_s], [object.dig("relationships", name, "data", "id")], "#{name} of #{client.id}"
      end
    end
  end

  def test_sequel_reads_the_same
    database = self.class.sequel
    visits = Class.new(Sequel::Model(database[:visits]))
    clients = Class.new(Sequel::Model(database[:clients]))
    clients.one_to_one :any_visit, class: visits, key: :client_id
    clients.one_to_one(:best_visit, class: visits, key: :client_id) { |all| all.reverse(:rank) }
    clients.one_to_one :worst_visit, class: visits, key: :client_id,
                                     order: [Sequel.asc(:rank, nulls: :first), Sequel.function(:length, :note)]
    resource = Class.new(Castellan::Resource) do
      model clients
      type "clients"
      %i[any best worst].each { |name| attribute(name, from: "#{name}_visit.note") }
    end
    ordered = clients.order(:id)
    scopes = [ordered, clients.where { id > 3 }.reverse(:name, :id), ordered.limit(110, 7), ordered.limit(9)]
    scopes.each_with_index do |scope, index|
      sql = recorded(database) { compare_sequel(resource, scope) }
      assert_equal index < 3, sql.first.include?("DISTINCT ON"), sql.first
    end
  end

  private

  def build
    self.class.define_singleton_method(:url) { @url ||= Castellan::TestServers.postgres_url }
    self.class.define_singleton_method(:sequel) { @sequel ||= Sequel.connect(url) }
    Base.establish_connection(self.class.url)
    Base.connection.execute(TABLES)
    fill(Random.new(20_261_123))
    Base.connection.execute("ANALYZE")
    true
  end

  # A quarter of the clients have no visits; ranks repeat, and are often NULL.
  def fill(random)
    Place.insert_all!(Array.new(9) { |index| { name: "Place #{index}", closed: index % 3 == 0 } })
    Sign.insert_all!(Array.new(30) { |index| { place_id: 1 + random.rand(9), label: "Sign #{random.rand(5)}#{index}" } })
    some = -> { [nil, 1 + random.rand(10)].sample(random: random) }
    Client.insert_all!(Array.new(CLIENTS) { { name: "Client #{random.rand(20)}", home_id: some.call } })
    visits = Array.new(CLIENTS * 4) do |index|
      { client_id: 1 + random.rand(CLIENTS * 3 / 4), place_id: some.call, note: "Note #{index}",
        rank: [nil, random.rand(3)].sample(random: random), type: [LateVisit, Visit].sample(random: random).name }
    end
    Visit.insert_all!(visits)
    Ledger.insert_all!(Array.new(CLIENTS) { |index| { client_id: index + 1 } })
    Entry.insert_all!(Array.new(CLIENTS * 2) { |index| { client_id: 1 + random.rand(CLIENTS), position: index } })
  end

  # @return [String] the statement of the clients
  def check(scope)
    found = nil
    sql = statements { found = JSON.parse(ClientResource.render(scope))["data"] }
    records = scope.to_a
    assert_equal records.map { |client| client.id.to_s }, found.map { |object| object["id"] }
    found.zip(records) { |object, client| assert_equal truth(client), attributes(object), "of client #{client.id}, #{scope.to_sql}" }
    sql.first
  end

  def attributes(object) = object["attributes"].except("name")

  def truth(client)
    self.class.truths[client.id] ||= PATHS.to_h do |name, path|
      [name.to_s, path.split(".").reduce(client) { |record, step| record&.public_send(step) }]
    end
  end

  def statements
    found = []
    seen = ->(*, payload) { found << payload[:sql] unless payload[:name] == "SCHEMA" }
    ActiveSupport::Notifications.subscribed(seen, "sql.active_record") { yield }
    found
  end

  def compare_sequel(resource, scope)
    found = JSON.parse(resource.render(scope))["data"].map { |object| [object["id"].to_i, *object["attributes"].values] }
    lazy = scope.all.map { |client| [client.id, *%i[any_visit best_visit worst_visit].map { |name| client.public_send(name)&.note }] }
    assert_equal lazy, found
  end

  def recorded(database)
    logger = Class.new { attr_reader(:lines) && define_method(:info) { |line| (@lines ||= []) << line } }.new
    logger.define_singleton_method(:error) { |line| raise line }
    database.loggers << logger
    yield
    logger.lines.grep(/castellan|FROM "clients"/)
  ensure
    database.loggers.delete(logger)
  end
end
