# frozen_string_literal: true

require "test_helper"
require "sequel"
require "castellan"
require "rack/mock_request"
require "timeout"

# Values of Sequel's own classes for PostgreSQL are written as those of plain columns.
class SequelPostgresValuesTest < Minitest::Test
  COLUMNS = { prices: "numeric[]", times: "timestamp[]", grid: "numeric[][]", days: "daterange", hours: "tsrange", sizes: "int4range",
              costs: "numrange", gaps: "int4multirange", opens: "time", breaks: "time[]",
              total: "numeric(10,0)" }.freeze

  def setup
    needs :postgres
    @database = Sequel.connect(Castellan::TestServers.postgres_url, keep_reference: false)
    @database.timezone = :utc
    @database.extension(:pg_array, :pg_range, :pg_multirange)
    @database.create_table(:offers) do
      primary_key :id
      COLUMNS.each { |name, type| column(name, type) }
    end
    @offers = Class.new(Sequel::Model(@database[:offers])) { def self.name = "Offer" }
  end

  def teardown = @database&.disconnect

  def test_members_of_arrays_are_written_as_columns_of_their_type
    assert_equal ["12.5", nil], written(:prices, "{12.50,NULL}")
    assert_equal ["2026-01-31T12:00:00.000Z"], written(:times, "{2026-01-31 12:00:00}")
    assert_equal [["1.5", "2.0"], ["3.0", "4.0"]], written(:grid, "{{1.5,2},{3,4}}")
  end

  def test_ranges_are_written_as_postgres_writes_them
    assert_equal "[1,4)", written(:sizes, "[1,3]")
    assert_equal "[1,)", written(:sizes, "[1,)")
    assert_equal "(,6)", written(:sizes, "(,5]")
    assert_equal "empty", written(:sizes, "empty")
    assert_equal "[2026-01-01,)", written(:days, "[2026-01-01,)")
    assert_equal "[2026-01-31T12:00:00.000Z,2026-02-01T00:00:00.000Z)", written(:hours, "[2026-01-31 12:00,2026-02-01 00:00)")
    assert_equal "[1.5,2.5]", written(:costs, "[1.5,2.50]")
    assert_equal ["[1,3)", "[7,9)"], written(:gaps, "{[1,3),[7,9)}")
  end

  # Sequel adds the date of today, so the bytes of the same row would differ from day to day.
  def test_times_of_day_are_written_without_a_date
    assert_equal %w[12:30:00 12:30:00.500000], [written(:opens, "12:30"), written(:opens, "12:30:00.5")]
    assert_equal ["08:00:00", nil], written(:breaks, "{08:00,NULL}")
  end

  # Sequel would write a row of NULLs.
  def test_an_object_in_an_array_of_composite_values_is_refused
    @database.run("CREATE TYPE visit AS (at timestamp, price numeric)")
    @database.extension(:pg_row)
    @database.register_row_type(:visit)
    @database.alter_table(:offers) { add_column :visits, "visit[]" }
    @offers.set_dataset(@database[:offers])
    id = @offers.dataset.naked.insert(visits: Sequel.lit("'{\"(2026-01-31 12:00,12.50)\"}'"))
    assert_equal [422, "visits cannot be an array"], patched(id, visits: [{ price: 1 }])
    assert_equal [200, nil], patched(id, prices: [1.5])
    assert_equal 12.5, @offers[id].visits.first[:price]
  end

  def test_a_numeric_without_decimals_is_written_as_sequel_returns_it
    assert_equal "1200.0", written(:total, "1200")
  end

  def test_members_of_a_composite_value_are_written_as_columns_of_their_type
    @database.run("CREATE TYPE visit AS (at timestamp, price numeric)")
    @database.extension(:pg_row)
    @database.register_row_type(:visit)
    @database.alter_table(:offers) { add_column :visit, :visit }
    @offers.set_dataset(@database[:offers])
    assert_equal({ "at" => "2026-01-31T12:00:00.000Z", "price" => "12.5" }, written(:visit, "(2026-01-31 12:00,12.50)"))
  end

  def test_statements_have_their_values_with_pg_auto_parameterize
    @database.extension(:pg_auto_parameterize)
    @database.create_table(:trees) {
      primary_key :id
      Integer :offer_id
    }
    [nil, 1, 1].each { |id| @database[:trees].insert(offer_id: id) }
    offers = Class.new(Sequel::Model(@database[:trees])) { def self.name = "Offer" }
    offers.many_to_one :offer, class: offers
    offers.one_to_many :offers, class: offers, key: :offer_id
    resource = Class.new(Castellan::Resource) do
      model offers
      scope { |all| all.where(Sequel[:trees][:id] => 1..2) }
      belongs_to :offer, resource: self
      has_many :offers, resource: self
      filter :parent, from: "offer.id"
      filter :offer_id
    end
    ids = ->(**query) { JSON.parse(resource.render(include: %i[offer offers], **query))["data"].map { |one| one["id"] } }
    assert_equal %w[1 2], ids.call
    assert_equal [%w[2], %w[2], []], [{ offer_id: 1 }, { parent: 1 }, { offer_id: 2 }].map { |filter| ids.call(filter: filter) }
    refute_includes resource.document(include: %i[offer offers]).explain.to_s, "because"
  end

  # Otherwise the first document would change what `to_json` writes elsewhere in the process.
  def test_a_document_does_not_load_the_json_of_active_support
    script = <<~RUBY
      require "sequel"
      require "active_support"
      require "active_support/duration" # as pg_interval does
      require "castellan"
      DB = Sequel.sqlite
      DB.create_table(:offers) { primary_key :id }
      DB[:offers].insert
      class Offer < Sequel::Model; end
      class OfferResource < Castellan::Resource
        model Offer
        attribute(:length) { ActiveSupport::Duration.build(3600) }
        attribute(:day) { Date.new(2026, 1, 31) }
      end
      before = [Time.utc(2026)].to_json
      class OfferSerializer
        include Castellan::Serializer
        attribute(:length) { 7 }
      end
      OfferSerializer.new(Offer.first).to_json
      puts OfferResource.render, before == [Time.utc(2026)].to_json
    RUBY
    document, same = run_ruby("-e", script).lines(chomp: true).last(2)
    assert_equal({ "length" => 3600, "day" => "2026-01-31" }, JSON.parse(document)["data"].first["attributes"])
    assert_equal "true", same
  end

  private

  def patched(id, attributes)
    offers = @offers
    resource = Class.new(Castellan::Resource) do
      model offers
      type "offers"
      writable(*attributes.keys)
      attributes(*attributes.keys)
    end
    input = JSON.generate(data: { type: "offers", id: id.to_s, attributes: attributes })
    client = Rack::MockRequest.new(Castellan.app { resource resource })
    response = client.patch("/offers/#{id}", input: input, "CONTENT_TYPE" => "application/vnd.api+json")
    [response.status, JSON.parse(response.body).dig("errors", 0, "detail")]
  end

  def written(name, text)
    id = @offers.dataset.naked.insert(name => Sequel.lit("'#{text}'"))
    offers = @offers
    resource = Class.new(Castellan::Resource) do
      model offers
      type "offers"
      attributes name
    end
    row, record = Timeout.timeout(10) { [resource.render(id: id), resource.render(offers[id])] }
    assert_equal row, record
    JSON.parse(row).dig("data", "attributes", name.name)
  end
end
