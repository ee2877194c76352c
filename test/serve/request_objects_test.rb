# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack/mock_request"
require "tmpdir"

# Negotiation, validators and the entity tag allocate few objects beside the document.
class RequestObjectsTest < Minitest::Test
  MOST = 60

  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Letter < Record
    has_many :stamps, class_name: "RequestObjectsTest::Stamp"
    has_many :shown, -> { where(number: Thread.current[:shown_stamps] || 1) }, class_name: "RequestObjectsTest::Stamp",
                                                                               foreign_key: :letter_id
    has_many :colors, -> { order(:name) }, through: :stamps
    has_many :numbered, -> { order(:number) }, class_name: "RequestObjectsTest::Stamp", foreign_key: :letter_id
    has_many :by_number, through: :numbered, source: :color
    has_many :of_number, ->(letter = nil) { where(number: letter&.number) }, class_name: "RequestObjectsTest::Stamp",
                                                                             foreign_key: :letter_id
    has_many :strict, through: :numbered, source: :color, strict_loading: true
  end

  class Stamp < Record
    belongs_to :color, class_name: "RequestObjectsTest::Color"
  end

  class Color < Record; end

  class ColorResource < Castellan::Resource
    model Color
    attributes :name
  end

  class StampResource < Castellan::Resource
    model Stamp
    type "stamps"
    attributes :number
    belongs_to :color
  end

  class LetterResource < Castellan::Resource
    model Letter
    type "letters"
    attributes :title, :number
    sort :number, default: "number"
    page size: 20
  end

  class OwnerResource < Castellan::Resource
    model Letter
    type "owners"
    attributes :number
    %i[colors by_number strict].each { |name| has_many name, resource: "ColorResource" }
    has_many :shown, resource: "StampResource"
    filter :number
    page size: 2
  end

  class CountedLetterResource < Castellan::Resource
    model Letter
    type "counted-letters"
    attributes :number
    filter :number
    page size: 2, count: "total"
  end

  def setup
    @directory = Dir.mktmpdir # SQLite writes more files beside the database
    Record.establish_connection(adapter: "sqlite3", database: File.join(@directory, "objects.sqlite3"))
    Record.connection.create_table(:letters) { |table| table.string(:title) && table.integer(:number) }
    Letter.table_name = "letters"
    Record.connection.create_table(:stamps) { |table| %i[letter_id color_id number].each { |name| table.integer(name) } }
    Record.connection.create_table(:colors) { |table| table.string(:name) }
    [[Stamp, "stamps"], [Color, "colors"]].each { |model, table| model.table_name = table }
    Color.insert_all!(%w[red blue].map { |name| { name: name } })
    Stamp.insert_all!([[1, 1, 1], [1, 2, 2], [2, 2, 1], [2, 2, 2]].map { |values| %i[letter_id color_id number].zip(values).to_h })
    Letter.insert_all!((1..30).map { |number| { title: "Letter #{number}", number: number } })
    @app = Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"] }
      [LetterResource, OwnerResource, CountedLetterResource, ColorResource, StampResource].each { |one| resource one }
    end
  end

  def teardown
    Record.remove_connection
    FileUtils.rm_rf(@directory)
  end

  def test_a_page_allocates_few_objects_beside_its_document
    query = Castellan::Plan::Request.parse(LetterResource.definition, { "page" => { "number" => "2" } })
    document = warm_objects { LetterResource.document(query: query, viewer: "a", keeper: nil).to_json }
    found = warm_objects { assert_equal 200, answer("/letters?page%5Bnumber%5D=2").first }
    assert_operator found - document, :<=, MOST
  end

  def test_a_304_allocates_few_objects_beside_its_document
    etag = answer("/letters/3")[1].fetch("etag")
    document = warm_objects { LetterResource.document(id: "3", viewer: "a", keeper: nil).to_json }
    found = warm_objects { assert_equal 304, answer("/letters/3", "HTTP_IF_NONE_MATCH" => etag).first }
    assert_operator found - document, :<=, MOST
  end

  # The columns that need the model's readers are found once, not in each rendering.
  def test_loaded_records_allocate_few_objects
    few, more = [1, 20].map do |count|
      letters = Letter.order(:id).first(count)
      warm_objects { LetterResource.render(letters) }
    end
    assert_operator few, :<=, 100
    assert_operator more - few, :<=, 19 * 2
  end

  def test_related_records_are_read_with_kept_sql
    few = warm_objects { assert_equal 200, answer("/owners/1/colors").first }
    assert_operator few, :<, 800
    assert_equal [%w[blue], %w[blue red]], [2, 1].map { |id| attributes("/owners/#{id}/colors", "name").uniq }
    Color.unscoped.scoping { assert_equal %w[blue red], attributes("/owners/1/colors", "name") }
    Color.where(name: "red").scoping(all_queries: true) { assert_equal %w[red], attributes("/owners/1/colors", "name") }
    [1, 2, 1, 3, 2].each do |number|
      Thread.current[:shown_stamps] = number
      assert_equal Letter.find(1).shown.map(&:number), attributes("/owners/1/shown", "number")
    end
  ensure
    Thread.current[:shown_stamps] = nil
  end

  # ActiveRecord keeps the scope of an association as it was evaluated first.
  def test_a_given_association_is_read_as_it_was_evaluated
    Thread.current[:shown_stamps] = 1
    first = Letter.find(1).shown
    first.to_sql
    numbers = ->(given) { JSON.parse(StampResource.render(given, keeper: nil))["data"].map { |stamp| stamp.dig("attributes", "number") } }
    Thread.current[:shown_stamps] = 2
    3.times do
      assert_equal [1], numbers.call(first)
      assert_equal [2], numbers.call(Letter.find(1).shown)
    end
  ensure
    Thread.current[:shown_stamps] = nil
  end

  def test_a_scope_with_an_optional_owner_is_evaluated_with_the_owner
    numbers = -> { JSON.parse(StampResource.render(Letter.find(2).of_number))["data"].map { |stamp| stamp.dig("attributes", "number") } }
    assert_equal [2], numbers.call
    Letter.where(id: 2).update_all(number: 1)
    assert_equal [1], numbers.call
  end

  def test_sql_with_many_ids_is_not_kept
    render = ->(first) { CountedLetterResource.render(Letter.where(id: Array.new(1_000) { |id| first + id })) }
    20.times { |first| 2.times { render.call(first) } }
    GC.start
    assert_operator ObjectSpace.each_object(String).count { |text| text.bytesize > 3_000 && text.include?('"letters"."id" IN (') }, :<, 20
  end

  def test_a_related_record_is_read_as_a_row
    few = warm_objects { assert_equal 200, answer("/stamps/1/color").first }
    assert_operator few, :<, 350
    Stamp.strict_loading_by_default = true
    assert_equal "blue", JSON.parse(answer("/stamps/2/color").last.join).dig("data", "attributes", "name")
  ensure
    Stamp.strict_loading_by_default = false
  end

  # They are read through models, because a joined table has the order.
  def test_strict_loading_does_not_forbid_related_urls
    assert_equal %w[red blue], attributes("/owners/1/strict", "name")
    Letter.strict_loading_by_default = true
    assert_equal %w[red blue], attributes("/owners/1/by_number", "name")
  ensure
    Letter.strict_loading_by_default = false
  end

  def test_either_of_two_conditions_costs_about_as_much_as_one
    one = warm_objects { LetterResource.render(Letter.where(number: 1)) }
    statements = capture_statements { LetterResource.render(Letter.where(number: 1).or(Letter.where(title: "Letter 2"))) }
    assert_equal 1, statements.size
    either = warm_objects { LetterResource.render(Letter.where(number: 1).or(Letter.where(title: "Letter 2"))) }
    assert_operator either, :<, one + 120
    [2, 3].each do |number|
      found = JSON.parse(LetterResource.render(Letter.where(number: 1).or(Letter.where(title: "Letter #{number}"))))["data"]
      assert_equal(["Letter 1", "Letter #{number}"], found.map { |one| one["attributes"]["title"] })
    end
  end

  def test_the_sql_that_counts_a_filtered_list_is_kept
    found = %w[1 2 1 99].map { |number| JSON.parse(answer("/counted-letters?filter%5Bnumber%5D=#{number}").last.join).dig("meta", "total") }
    assert_equal [1, 1, 1, 0], found
    counted, uncounted = [CountedLetterResource, OwnerResource].map do |resource|
      asked = { "filter" => { "number" => "1" }, "fields" => { resource.definition.type => "number" } }
      query = Castellan::Plan::Request.parse(resource.definition, asked)
      warm_objects { resource.document(query: query, keeper: nil).to_json }
    end
    assert_operator counted, :<, uncounted + 80
  end

  private

  def attributes(path, name) = JSON.parse(answer(path).last.join)["data"].map { |one| one["attributes"][name] }

  def capture_statements(&block)
    found = []
    ActiveSupport::Notifications.subscribed(->(*, payload) { found << payload[:sql] }, "sql.active_record", &block)
    found
  end

  def answer(path, headers = {})
    @environments ||= {}
    environment = @environments[[path, headers]] ||=
      Rack::MockRequest.env_for(path, "HTTP_AUTHORIZATION" => "a", "HTTP_ACCEPT" => "application/vnd.api+json;q=0.9, */*;q=0.1", **headers)
    @app.call(environment.dup)
  end

  def warm_objects(&block)
    3.times(&block)
    allocated_objects(&block)
  end
end
