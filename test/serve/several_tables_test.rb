# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"

# A collection of several tables: `types` of a resource without a model.
module SeveralTablesContract
  include JournalRequests

  RESOURCES = <<~RUBY
    class PersonResource < Castellan::Resource
      model Person
      type "people"
      attributes :name
    end

    class IssueResource < Castellan::Resource
      model Issue
      type "issues"
      attributes :title, :made_on
      belongs_to :person
      scope { |issues, team| team.to_i.zero? ? issues : issues.where(team: team) }
      filter :project_id, :title
      filter(:about) { |issues, words| issues.where(title: words) }
      filter :owner, from: "person.name"
      sort :made_on, :title
      sort :owner, from: "person.name"
      self_links "/issues"
      writable :title
    end

    class NoteResource < Castellan::Resource
      model Note
      type "notes"
      attributes :body, :made_on
      attribute(:loud, columns: %i[body], pure: true) { |row| row.body.upcase }
      belongs_to :person
      has_many :pictures
      filter :project_id
      filter(:about) { |notes, words| notes.where(body: words) }
      filter :owner, from: "person.name"
      sort :made_on
      sort :owner, from: "person.name"
    end

    class PictureResource < Castellan::Resource
      model Picture
      type "pictures"
      attributes :made_on
      belongs_to :person
      filter :project_id
      filter(:about) { |pictures, words| pictures.where(code: words) }
      filter :owner, from: "person.name"
      sort :made_on
      sort :owner, from: "person.name"
    end

    class ActivityResource < Castellan::Resource
      types "IssueResource", "NoteResource", "PictureResource"
      sort default: "-made_on"
      page size: 4, max_size: 50, count: true
      cache :exact
    end

    class FeedResource < Castellan::Resource
      types "IssueResource", "NoteResource", "PictureResource"
      sort default: "-made_on"
      page :cursor, size: 4, max_size: 50, count: true, cursors: true
    end
  RUBY
  ALL = [%w[pictures p-2], %w[notes 10], %w[notes 9], %w[notes 2], %w[issues 10], %w[issues 2], %w[pictures p-1], %w[notes 1],
         %w[issues 1]].freeze

  # Its tables, models and resources, once for each database and ORM.
  def self.declare(journal)
    return journal.models::Board if journal.models.const_defined?(:Board, false)

    key = journal.send(:sqlite?) ? "integer PRIMARY KEY" : "bigserial PRIMARY KEY"
    shared = "person_id bigint, project_id integer, made_on date"
    journal.run("CREATE TABLE people (id #{key}, name varchar(40))")
    journal.run("CREATE TABLE issues (id #{key}, title varchar(40), team integer, #{shared})")
    journal.run("CREATE TABLE notes (id #{key}, body varchar(40), #{shared})")
    journal.run("CREATE TABLE pictures (code varchar(20) PRIMARY KEY, note_id bigint, #{shared})")
    journal.models.const_set(:Board, Module.new).tap do |board|
      journal.is_a?(SequelJournal) ? sequel(board, journal) : active_record(board, journal)
      board.module_eval(RESOURCES)
    end
  end

  def self.active_record(board, journal)
    board.const_set(:Base, journal.models::Base)
    board.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Person < Base; end
      class Issue < Base; belongs_to :person, optional: true; end
      class Note < Base; belongs_to :person, optional: true; has_many :pictures; end
      class Picture < Base; self.primary_key = "code"; belongs_to :person, optional: true; end
    RUBY
  end

  def self.sequel(board, journal)
    db = journal.models::DB
    %w[Person Issue Note Picture].zip(%i[people issues notes pictures]) do |name, table|
      board.const_set(name, Class.new(Sequel::Model(db[table])))
    end
    [board::Issue, board::Note, board::Picture].each { |model| model.many_to_one :person, class: board::Person, key: :person_id }
    board::Note.one_to_many :pictures, class: board::Picture, key: :note_id
  end

  def setup
    board = @board = SeveralTablesContract.declare(journal)
    %w[pictures notes issues people].each { |table| journal.run("DELETE FROM #{table}") }
    journal.run("INSERT INTO people (id, name) VALUES (1, 'Ada'), (2, 'Grace')")
    journal.run("INSERT INTO issues (id, title, team, person_id, project_id, made_on) VALUES (1, 'First', 1, 1, 1, '2026-01-01'), " \
                "(2, 'Second', 1, 2, 1, '2026-01-02'), (10, 'Tenth', 2, NULL, 2, '2026-01-02')")
    journal.run("INSERT INTO notes (id, body, person_id, project_id, made_on) VALUES (1, 'one', 1, 1, '2026-01-01'), " \
                "(2, 'two', 2, 1, '2026-01-02'), (9, 'nine', 2, 2, '2026-01-02'), (10, 'ten', 1, 2, '2026-01-02')")
    journal.run("INSERT INTO pictures (code, note_id, person_id, project_id, made_on) VALUES ('p-1', 2, 1, 1, '2026-01-01'), " \
                "('p-2', 2, 2, 2, '2026-01-02')")
    @app = serve do |_models|
      resource board::ActivityResource
      resource board::FeedResource
      resource board::IssueResource
      resource board::NoteResource
      operations
      openapi
      pages
    end
  end

  def test_the_rows_of_all_tables_are_one_list
    _, document = get("/activities?page[size]=50")
    assert_equal ALL, identifiers(document["data"])
    assert_equal 9, document["meta"]["total"]
    assert_equal({ "title" => "Tenth", "made_on" => "2026-01-02" }, document["data"][4]["attributes"])
    assert_equal({ "body" => "ten", "made_on" => "2026-01-02", "loud" => "TEN" }, document["data"][1]["attributes"])
    assert_equal "/issues/10", document["data"][4]["links"]["self"]
    refute document.key?("included")
  end

  def test_each_item_is_written_as_its_own_resource_writes_it
    alone = { "issues" => @board::IssueResource, "notes" => @board::NoteResource, "pictures" => @board::PictureResource }
    get("/activities?page[size]=50").last["data"].each do |item|
      assert_equal JSON.parse(alone[item["type"]].render(id: item["id"]))["data"], item
    end
  end

  def test_pages_by_number_divide_the_list
    pages = (1..3).map { |number| identifiers(get("/activities?page[number]=#{number}&page[size]=4").last["data"]) }
    assert_equal ALL.each_slice(4).to_a, pages
    assert_match(/page%5Bnumber%5D=3/, get("/activities").last["links"]["last"])
    assert_empty get("/activities?page[number]=9").last["data"]
  end

  def test_cursors_walk_through_the_list_and_back
    ["", "&sort=made_on", "&sort=owner", "&sort=-owner,made_on", "&sort=made_on,-owner"].each { |sort| assert_walk(2, sort) }
    [1, 3, 9].each { |size| assert_walk(size, "") }
    assert_equal ALL, identifiers(get("/feeds?page[size]=50").last["data"])
    assert_equal({ "total" => 9 }, get("/feeds").last["meta"]["page"])
  end

  def test_each_item_has_its_cursor
    data = get("/feeds?page[size]=50").last["data"]
    data.each_with_index do |item, index|
      cursor = item["meta"]["page"]["cursor"]
      assert_equal ALL.drop(index + 1), identifiers(get("/feeds?page[size]=50&page[after]=#{cursor}").last["data"])
    end
    refute get("/activities").last["data"].first.key?("meta")
  end

  def test_rows_that_are_written_meanwhile_move_nothing
    first = get("/feeds").last
    journal.run("INSERT INTO notes (id, body, made_on) VALUES (50, 'new', '2026-02-01')")
    assert_equal ALL[4, 4], identifiers(get(first["links"]["next"]).last["data"])
  end

  def test_wrong_cursors_are_refused
    cursor = get("/feeds").last["links"]["next"][/after%5D=([\w-]+)/, 1]
    ["x#{cursor}", "x", cursor.reverse].each { |wrong| assert_bad_parameter "page[after]", "/feeds?page[after]=#{wrong}" }
    assert_bad_parameter "page[after]", "/feeds?sort=made_on&page[after]=#{cursor}"
    order = "#{@board::FeedResource.name} feeds made_on desc"
    [["2026-01-01", 3, 1], ["2026-01-01", 0, "x"], ["2026-01-01", -1, 1], ["2026-01-01", 0, nil], ["2026-01-01", 0], [{}, 0, 1],
     ["2026-01-01", "0", 1], ["2026-01-01", 0, { "a" => 1 }]].each do |values|
      assert_bad_parameter "page[after]", "/feeds?page[after]=#{Castellan::Plan::Cursor.new(values).text(order)}"
    end
  end

  def test_what_all_types_have_can_be_filtered_and_sorted_by
    assert_equal [%w[issues 1], %w[notes 1], %w[pictures p-1], %w[issues 2], %w[notes 2]],
                 identifiers(get("/activities?filter[project_id]=1&sort=made_on&page[size]=9").last["data"])
    assert_equal [%w[notes 10], %w[pictures p-1]], identifiers(get("/activities?filter[about]=ten,p-1&filter[owner]=Ada").last["data"])
    assert_equal 2, get("/activities?filter[about]=ten,p-1&filter[owner]=Ada").last["meta"]["total"]
    errors = assert_bad_parameter("filter[title]", "/activities?filter[title]=First")
    assert_equal 'activities cannot be filtered by "title", which only issues can', errors.first["detail"]
    errors = assert_bad_parameter("sort", "/activities?sort=-title")
    assert_equal 'activities cannot be sorted by "title", which only issues can', errors.first["detail"]
    assert_bad_parameter "filter[project_id]", "/activities?filter[project_id]=one"
    assert_bad_parameter "filter[nothing]", "/activities?filter[nothing]=1"
  end

  def test_a_filter_of_one_type_may_have_a_from_of_its_own
    sequel = journal.is_a?(SequelJournal)
    notes = Class.new(@board::NoteResource) do
      filter(:about) do |notes, _|
        sequel ? notes.where(id: 2).union(notes.where(id: 9)) : notes.from("(SELECT * FROM notes WHERE id IN (2, 9)) notes")
      end
    end
    issues = @board::IssueResource
    @app = serve do |_models|
      resource(Class.new(Castellan::Resource) { [type("mixed"), types(issues, notes), sort(default: "made_on"), page(size: 9)] })
    end
    assert_equal [%w[issues 1], %w[notes 2], %w[notes 9]], identifiers(get("/mixed?filter[about]=First").last["data"])
  end

  def test_the_members_of_each_type_can_be_included_and_chosen
    _, document = get("/activities?include=person,pictures&fields[notes]=body,pictures&fields[issues]=title&sort=made_on&page[size]=50")
    assert_equal({ "body" => "one" }, document["data"][1]["attributes"])
    assert_equal %w[pictures], document["data"][1]["relationships"].keys
    assert_equal [%w[people 1], %w[people 2]], identifiers(document["included"]).sort
    assert_bad_parameter "include", "/activities?include=owner"
  end

  def test_an_attribute_may_have_the_name_of_a_relationship_of_another_type
    notes = @board::NoteResource
    issues = Class.new(@board::IssueResource) { attribute(:pictures, columns: %i[title]) { |row| "of #{row.title}" } }
    @app = serve do |_models|
      resource(Class.new(Castellan::Resource) do
        type "mixed"
        types issues, notes
        sort default: "-made_on"
      end)
    end
    response, document = get("/mixed?include=pictures")
    assert_equal [200, %w[p-1 p-2]], [response.status, document["included"].map { |one| one["id"] }.sort]
    assert_includes document["data"].map { |one| one["attributes"]["pictures"] }, "of Tenth"
  end

  def test_a_viewer_sees_what_each_type_shows
    assert_equal ALL - [%w[issues 10]], identifiers(get("/feeds?page[size]=50", HTTP_AUTHORIZATION: "1").last["data"])
    assert_equal 8, get("/activities", HTTP_AUTHORIZATION: "1").last["meta"]["total"]
    assert_equal ALL - [%w[issues 1], %w[issues 2]], identifiers(get("/activities?page[size]=50", HTTP_AUTHORIZATION: "2").last["data"])
  end

  def test_it_can_be_read_alone
    response, document = send_data("POST", "/activities", type: "issues", attributes: { title: "New" })
    assert_equal [405, "GET, HEAD"], [response.status, response["allow"]]
    assert_equal "only GET, HEAD are answered here: change issues at /issues, notes at /notes", document["errors"].first["detail"]
    %w[/activities/1 /activities/1/person /activities/1/relationships/person].each { |path| assert_equal 404, get(path).first.status }
    assert_equal 404, send_data("PATCH", "/activities/1", type: "issues", id: "1", attributes: { title: "New" }).first.status
    _, changed = send_data("PATCH", "/issues/1", type: "issues", id: "1", attributes: { title: "New" })
    assert_equal "/issues/1", changed["data"]["links"]["self"]
    assert_equal 404, operation({ op: "add", href: "/activities", data: { type: "issues", attributes: { title: "New" } } }).status
    assert_equal 404, operation({ op: "add", data: { type: "activities", attributes: {} } }).status
  end

  def test_it_is_described
    description = get("/openapi.json").last
    assert_equal %w[get], description["paths"]["/activities"].keys
    refute description["paths"].key?("/activities/{id}")
    names = description["paths"]["/activities"]["get"]["parameters"].map { |one| one["name"] }
    assert_equal %w[fields[issues] fields[notes] fields[pictures] include sort filter[project_id] filter[about] filter[owner] page[number]
                    page[size]], names
    items = description.dig("paths", "/activities", "get", "responses", "200", "content", JSON_API, "schema", "properties", "data", "items")
    assert_equal %w[issues notes pictures], items["oneOf"].map { |one| one["$ref"].split("/").last }
    page = request("GET", "/activities", HTTP_ACCEPT: "text/html")
    assert_equal 200, page.status
    assert_includes page.body, "/notes/10"
  end

  def test_explain_names_the_statement_and_the_tables
    text = @board::ActivityResource.document(query: { "include" => "person" }).explain
    assert_includes text, "activities: the ids of issues, notes, pictures in one order, in one statement"
    assert_includes text, "tables: issues, notes, people, pictures"
    assert_match(/^statement: SELECT \* FROM \(SELECT \* FROM \(SELECT 0 AS castellan_0/, text)
    refute_match(/models of this type/, text)
  end

  def test_other_ways_to_write_it_have_the_same_records
    document = @board::ActivityResource.document
    streamed = +""
    document.each { |bytes| streamed << bytes }
    assert_equal @board::ActivityResource.render, streamed
    nested = JSON.parse(@board::FeedResource.render(format: :nested))
    assert_equal ALL.first(4).map(&:last), nested.map { |one| one["id"].to_s }
    refute nested.first.key?("meta")
    assert_empty Castellan.verify { @board::FeedResource.render }.differences
    activities = @board::ActivityResource.definition
    types = Castellan::CLI::TypeScript.new([activities, *activities.types]).to_s
    assert_match(/^export type .*Activit.* = .*Issue \| .*Note \| .*Picture;/, types)
  end

  def test_code_gives_no_records_of_its_own
    assert_raises(Castellan::ConfigurationError) { @board::ActivityResource.document(id: 1) }
    assert_raises(Castellan::ConfigurationError) { @board::ActivityResource.document(@board::Issue) }
    board = @board
    assert_raises(Castellan::ConfigurationError) { Castellan.app { resource board::ActivityResource, scope: ->(_) { board::Issue } } }
  end

  def test_a_kept_document_is_of_its_viewer_and_changes_with_each_table
    versions = journal.versions
    versions.install(%w[issues notes pictures people])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    read = ->(team = 0) { @board::ActivityResource.document(viewer: team, query: { "include" => "person", "page" => { "size" => "50" } }) }
    assert_predicate read.call.rendering, :kept?
    2.times { assert_equal ALL, identifiers(JSON.parse(read.call.to_json)["data"]) }
    assert_equal ALL.size - 1, JSON.parse(read.call(1).to_json)["data"].size
    etags = [read.call.etag]
    ["pictures SET person_id = NULL", "notes SET body = 'x'", "issues SET team = 9", "people SET name = 'x'"].each do |change|
      journal.run("UPDATE #{change}")
      etags << read.call.etag
      body = read.call.to_json
      assert_equal without_keeper { read.call.to_json }, body
    end
    assert_equal 5, etags.uniq.size
  ensure
    Castellan.keeper = nil
    versions.uninstall(%w[issues notes pictures people])
  end

  def test_no_filter_tells_what_an_if_hides
    board = @board
    notes = Class.new(board::NoteResource) { attribute :project_id, if: ->(viewer) { viewer == 7 } }
    guarded = Class.new(Castellan::Resource) do
      type "guarded"
      types board::IssueResource, notes
    end
    @app = serve { |_models| resource guarded }
    assert_bad_parameter "filter[project_id]", "/guarded?filter[project_id]=1"
    assert_equal 200, get("/guarded?filter[about]=ten", HTTP_AUTHORIZATION: "7").first.status
    assert_equal 200, get("/guarded?filter[project_id]=1", HTTP_AUTHORIZATION: "7").first.status
  end

  def test_wrong_declarations_name_what_is_wrong
    board = @board
    { "so its types declare the filters" => proc { filter :project_id },
      "so its types declare the attributes" => proc { attributes :title },
      "scope needs a model" => proc { scope { |rows, _| rows } },
      "names title, which notes cannot be sorted by" => proc { sort default: "title" } }.each do |text, mistake|
      assert_includes refused(board::IssueResource, board::NoteResource, &mistake), text
    end
    assert_includes refused(board::IssueResource, Class.new(Castellan::Resource) { type "plain" }), "has no model"
    assert_includes refused(board::IssueResource, Class.new(board::IssueResource)), "has the type of another one, issues"
    joined = Class.new(board::NoteResource) { id :project_id, :made_on }
    assert_includes refused(board::IssueResource, joined), "a whole number, a UUID or text"
    by_text = Class.new(board::NoteResource) { sort :made_on, from: "person.name" }
    assert_includes refused(board::IssueResource, by_text), "they sort made_on by columns of several types (date, text)"
  end

  private

  def refused(*types, &block)
    wrong = Class.new(Castellan::Resource) do
      type "wrong"
      types(*types)
      class_eval(&block) if block
    end
    assert_raises(Castellan::DeclarationError) { wrong.render }.message
  end

  def without_keeper
    keeper, Castellan.keeper = Castellan.keeper, nil
    yield
  ensure
    Castellan.keeper = keeper
  end

  def assert_walk(size, sort)
    all = identifiers(get("/feeds?page[size]=50#{sort}").last["data"])
    assert_equal ALL.sort, all.sort
    document = get("/feeds?page[size]=#{size}#{sort}").last
    walked = [identifiers(document["data"])]
    while (following = document["links"]["next"])
      document = get(following).last
      walked << identifiers(document["data"])
    end
    assert_equal all.each_slice(size).to_a, walked, sort
    back = [walked.last]
    while (previous = document["links"]["prev"])
      document = get(previous).last
      back.unshift(identifiers(document["data"]))
    end
    assert_equal all, back.flatten(1), sort
  end

  def identifiers(data) = data.map { |one| one.values_at("type", "id") }

  def operation(one)
    type = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
    request("POST", "/operations", input: JSON.generate("atomic:operations" => [one]), "CONTENT_TYPE" => type, "HTTP_ACCEPT" => type)
  end

  def assert_bad_parameter(parameter, path)
    response, document = get(path)
    assert_equal [400, parameter], [response.status, document["errors"]&.first&.dig("source", "parameter")], path
    document["errors"]
  end
end

JournalRequests.on_every_database(SeveralTablesContract)
