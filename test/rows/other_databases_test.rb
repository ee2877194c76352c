# frozen_string_literal: true

require "test_helper"
require "active_record"

# Types of a database that is neither PostgreSQL nor SQLite are read through models.
class OtherDatabasesTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Crate < Base
    has_many :apples, class_name: "OtherDatabasesTest::Apple"
  end

  class Apple < Base
    belongs_to :crate, class_name: "OtherDatabasesTest::Crate"
  end

  MODELS = [Crate, Apple].freeze

  def setup
    Base.connection.create_table(:crates, force: true) { |table| table.string :label }
    Base.connection.create_table(:apples, force: true) { |table| table.integer(:crate_id) && table.datetime(:picked_at) }
    2.times { |index| Crate.create!(label: "C#{index}").apples.create!(picked_at: Time.utc(2026, 1, 2)) }
  end

  def test_documents_are_equal_and_explain_the_reason
    rows = documents
    other = Castellan::Rows::Dialect.for(:other)
    Castellan::Rows::Dialect.stub(:for, other) do
      assert_equal rows, documents
      assert_includes resource.document.explain, "rows are read from PostgreSQL and SQLite alone"
    end
  end

  private

  def documents
    crates = resource
    [crates.render(include: "apples"), crates.render(id: 2, include: "apples"), crates.render(Crate.where(label: "C1")),
     crates.document(include: "apples").stream(size: 1).each.to_a.join]
  end

  def resource
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
    end
  end
end
