# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require "sequel"
require "castellan"

# Filters and orders have the names that clients read: with key_transform, they are not those of the declaration.
class WrittenNamesTest < Minitest::Test
  DATABASE = Sequel.sqlite
  DATABASE.create_table(:reports) {
    primary_key :id
    Integer :views_count
    Integer :owner_id
  }
  Report = Class.new(Sequel::Model(DATABASE[:reports]))

  class CamelResource < Castellan::Resource
    model Report
    type "reports"
    key_transform :camel_lower
    page size: 2
    filter :owner_id, :views_count
    filter(:seen_by) { |reports, ids| reports.where(owner_id: ids.map(&:to_i)) }
    sort :views_count
  end

  class WholeResource < CamelResource
    key_transform :dash
    page false
  end

  class RenamedResource < Castellan::Resource
    model Report
    type "reports"
    attribute :hits, from: "views_count"
    attribute :shown_hits, from: "views_count"
    writable :hits
  end

  def setup
    DATABASE[:reports].delete
    3.times { |number| Report.create(views_count: number, owner_id: number) }
  end

  def teardown = DATABASE[:reports].delete

  def test_filters_and_orders_that_are_no_attributes_have_the_transformed_name_too
    %w[filter[ownerId]=1 filter[owner_id]=1 filter[seenBy]=1 filter[seen_by]=1 filter[viewsCount]=1].each do |query|
      assert_equal [200, 1], ask(CamelResource, query).then { |status, body| [status, body["data"]&.size] }, query
    end
    assert_equal 200, ask(CamelResource, "sort=-viewsCount").first
  end

  def test_an_error_names_the_parameter_as_the_client_wrote_it
    %w[filter[viewsCount] filter[views_count]].each do |name|
      status, body = ask(CamelResource, "#{name}=x")
      error = body["errors"].first
      assert_equal [400, name], [status, error["source"]["parameter"]]
      assert_includes error["detail"], "#{name} must be"
    end
    assert_includes ask(CamelResource, "filter[viewCount]=1").last["errors"].first["detail"], "did you mean viewsCount?"
    assert_includes ask(WholeResource, "sort=zzz").last["errors"].first["detail"], "there is: views-count"
  end

  def test_page_false_takes_back_the_page_of_the_superclass
    assert_equal 2, ask(CamelResource, "").last["data"].size
    document = ask(WholeResource, "").last
    assert_equal [3, nil], [document["data"].size, document["links"]]
    assert_equal 400, ask(WholeResource, "page[size]=1").first
  end

  def test_page_needs_a_size
    error = assert_raises(Castellan::DeclarationError) { Class.new(Castellan::Resource) { page } }
    assert_includes error.message, "page size: nil"
  end

  # `from:` of one step names a column of the own table: as writable as under its own name.
  def test_an_attribute_with_another_name_than_its_column_is_written_by_that_name
    report = Report.first
    hits = ->(value) { change(report, hits: value) }
    assert_equal [200, 7], hits.call(7).then { |status, body| [status, body.dig("data", "attributes", "hits")] }
    assert_equal 7, report.refresh.views_count
    status, body = hits.call("many")
    assert_equal [422, "/data/attributes/hits"], [status, body["errors"].first.dig("source", "pointer")]
    assert_equal 403, change(report, shown_hits: 1).first
  end

  private

  def change(report, **attributes)
    data = { type: "reports", id: report.id.to_s, attributes: attributes }
    app = Castellan.app { resource RenamedResource }
    response = Rack::MockRequest.new(app).patch("/reports/#{report.id}", input: JSON.generate(data: data),
                                                                         "CONTENT_TYPE" => "application/vnd.api+json")
    [response.status, JSON.parse(response.body)]
  end

  def ask(resource, query)
    response = Rack::MockRequest.new(Castellan.app { resource resource }).get("/reports?#{query.gsub("[", "%5B").gsub("]", "%5D")}")
    [response.status, JSON.parse(response.body)]
  end
end
