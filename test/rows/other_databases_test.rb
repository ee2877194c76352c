# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"

# Types of a database that is neither PostgreSQL nor SQLite are read through models.
class OtherDatabasesTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Crate < Base
    has_many :apples, class_name: "OtherDatabasesTest::Apple"
    has_many :baskets, class_name: "OtherDatabasesTest::Basket"
  end

  class Apple < Base
    belongs_to :crate, class_name: "OtherDatabasesTest::Crate"
  end

  class Remark < Base
    belongs_to :target, polymorphic: true
  end

  # A database of another kind.
  class Away < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
    connection.define_singleton_method(:adapter_name) { "Other" }
  end

  class Basket < Away
  end

  MODELS = [Crate, Apple].freeze

  def setup
    Base.connection.create_table(:crates, force: true) { |table| table.string :label }
    Base.connection.create_table(:apples, force: true) { |table| table.integer(:crate_id) && table.datetime(:picked_at) }
    Base.connection.create_table(:remarks, force: true) { |table| table.references :target, polymorphic: true }
    Away.connection.create_table(:baskets, force: true) { |table| table.integer(:crate_id) && table.string(:label) }
    2.times do |index|
      crate = Crate.create!(label: "C#{index}")
      crate.apples.create!(picked_at: Time.utc(2026, 1, 2))
      crate.baskets.create!(label: "B#{index}")
    end
    Remark.create!(target: Crate.first)
  end

  def test_documents_are_equal_and_explain_the_reason
    rows = documents
    other do
      assert_equal rows, documents
      assert_includes resource.document.explain, "rows are read from PostgreSQL and SQLite alone"
    end
  end

  def test_pages_by_cursor_are_refused_before_the_first_document
    error = other { assert_raises(Castellan::DeclarationError) { resource(page: [:cursor, { size: 1 }]).render } }
    assert_includes error.message, "page :cursor: rows are read from PostgreSQL and SQLite alone; page by number"
  end

  # MySQL refuses `IN (SELECT … LIMIT 1)`.
  def test_a_limit_is_never_directly_in_a_subquery
    limited = Crate.order(:id).limit(1)
    other do
      crates = resource
      assert_equal ["C0"], labels(crates.render(limited, query: { "filter" => { "label" => "C0,C1" } }))
      sql = crates.document(limited, query: { "filter" => { "label" => "C1" } }).explain[/^statement: .*/]
      assert_match(/IN \(SELECT castellan_scope\."id" FROM \(SELECT .* LIMIT 1\) AS castellan_scope\)/, sql)
    end
  end

  def test_a_polymorphic_relationship_is_read_from_records
    crates = resource
    remarks = resource_of(Remark) { belongs_to :target, resource: [crates] }
    other do
      document = JSON.parse(remarks.render(include: "target"))
      assert_equal([{ "type" => "crates", "id" => "1" }], document["data"].map { |one| one.dig("relationships", "target", "data") })
      assert_equal %w[C0], labels(JSON.generate(data: document["included"]))
    end
  end

  def test_related_records_of_a_database_without_rows_are_loaded
    baskets = resource_of(Basket) { attributes :label }
    crates = resource_of(Crate) { has_many :baskets, resource: baskets }
    document = JSON.parse(crates.render(include: "baskets"))
    assert_equal [%w[1], %w[2]], linked(document)
    assert_equal %w[B0 B1], labels(JSON.generate(data: document["included"]))
    assert_equal linked(document), linked(JSON.parse(crates.render))
  end

  def test_related_records_of_another_database_of_sequel_are_loaded
    here, away = Array.new(2) { Sequel.sqlite(keep_reference: false) }
    away.define_singleton_method(:adapter_scheme) { :other }
    here.create_table(:crates) { primary_key :id }
    away.create_table(:baskets) { [primary_key(:id), foreign_key(:crate_id)] }
    basket = Class.new(Sequel::Model(away[:baskets]))
    crate = Class.new(Sequel::Model(here[:crates])) { one_to_many :baskets, class: basket, key: :crate_id }
    basket.insert(crate_id: crate.insert)
    baskets = resource_of(basket)
    assert_equal [%w[1]], linked(JSON.parse(resource_of(crate) { has_many :baskets, resource: baskets }.render))
  ensure
    [here, away].each(&:disconnect)
  end

  # As ActiveRecord reads a column of MySQL's type `int unsigned`.
  def test_unsigned_columns_can_be_filtered_by
    model = Class.new(Base) do
      self.table_name = "apples"
      attribute :crate_id, ActiveRecord::Type::UnsignedInteger.new(limit: 4)
    end
    resource = resource_of(model) { filter :crate_id }
    found = other { JSON.parse(resource.render(query: { "filter" => { "crate_id" => { "gt" => "1" } } }))["data"] }
    assert_equal [Apple.last.id.to_s], found.map { |apple| apple["id"] }
  end

  private

  def other(&block) = Castellan::Rows::Dialect.stub(:for, Castellan::Rows::Dialect.for(:other), &block)

  def resource_of(model, &declarations)
    Class.new(Castellan::Resource) do
      model model
      type model.table_name.to_s
      class_eval(&declarations) if declarations
    end
  end

  def linked(document)
    document["data"].map { |crate| crate.dig("relationships", "baskets", "data").map { |basket| basket["id"] } }
  end

  def labels(json) = JSON.parse(json).fetch("data").map { |crate| crate.dig("attributes", "label") }

  def documents
    crates = resource
    [crates.render(include: "apples"), crates.render(id: 2, include: "apples"), crates.render(Crate.where(label: "C1")),
     crates.document(include: "apples").stream(size: 1).each.to_a.join]
  end

  def resource(page: nil)
    crate, apple = MODELS
    apples = Class.new(Castellan::Resource) do
      model apple
      type "apples"
      attributes :picked_at
      attribute :label, from: "crate.label"
    end
    Class.new(Castellan::Resource) do
      model crate
      type "crates"
      attributes :label
      has_many :apples, resource: apples
      page(page.first, **page.last) if page
      filter :label
    end
  end
end
