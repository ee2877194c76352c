# frozen_string_literal: true

require "test_helper"
require "sequel"
require_relative "../rows/active_record_world"

# A resource may be identified by any column: its id is the text of what a record's reader answers, wherever it is written.
module IdsOfAnyColumnContract
  include ActiveRecordWorld::OwnWorld

  module World
    def self.of(base)
      base.connection.create_table(:parcels) do |table|
        table.decimal :weight, precision: 8, scale: 2
        table.date :sent_on
        table.datetime :sent_at, precision: 6
        table.boolean :heavy
        table.float :ratio
        table.integer :state
        table.string :code, :slug
        table.binary :digest
      end
      base.connection.create_table(:labels) { |table| table.bigint(:parcel_id) && table.string(:text) }
      const_set(base.module_parent_name, Module.new).tap do |world|
        world.const_set(:Base, base)
        world.module_eval(MODELS, __FILE__, __LINE__)
      end
    end

    MODELS = <<~RUBY
      class Mark < ActiveRecord::Type::String
        def deserialize(value) = value && "<\#{value}>"
        def serialize(value) = value && value.delete("<>")
      end
      class Parcel < Base
        enum :state, { packed: 0, sent: 1 }
        attribute :code, Mark.new
        has_many :labels
        def slug = "-\#{super}"
      end
      class Label < Base
        belongs_to :parcel
      end
    RUBY
  end

  COLUMNS = %i[weight sent_on sent_at heavy ratio state code slug digest].freeze

  def setup
    [world::Label, world::Parcel].each(&:delete_all)
    2.times do |number|
      parcel = world::Parcel.create!(weight: number + 1.5, sent_on: "2024-02-0#{number + 1}", sent_at: "2024-02-01 10:00:0#{number}.123456",
                                     heavy: number == 1, ratio: number + 0.25, state: number, code: "<a_#{number}>", slug: "s#{number}",
                                     digest: "d#{number}")
      parcel.labels.create!(text: "L#{number}")
    end
  end

  def test_the_id_is_the_text_of_what_the_reader_answers
    COLUMNS.each do |column|
      parcels, = resources(column)
      [parcel_scope, parcel_scope.to_a].each do |scope|
        document = JSON.parse(parcels.render(scope, include: "labels"))
        assert_equal ids(column), document["data"].map { |one| one["id"] }, column
        assert_equal %w[L0 L1], document["included"].map { |one| one["attributes"]["text"] }, column
      end
    end
  end

  def test_linkage_and_included_records_have_that_id
    COLUMNS.each do |column|
      _, labels = resources(column)
      [world::Label.order(:id), world::Label.order(:id).to_a].each do |scope|
        document = JSON.parse(labels.render(scope, include: "parcel"))
        assert_equal ids(column), document["data"].map { |one| one["relationships"]["parcel"]["data"]["id"] }, column
        assert_equal ids(column), document["included"].map { |one| one["id"] }, column
      end
    end
  end

  def test_a_record_is_found_by_it
    { weight: "2.5", sent_on: "2024-02-02", heavy: "true", ratio: "1.25", state: "sent", code: "<a_1>" }.each do |column, id|
      parcels, = resources(column)
      assert_equal id, JSON.parse(parcels.document(id: id).to_json)["data"]["id"], column
      assert_equal 404, parcels.document(id: "nobody").status, column unless column == :heavy # all that is not false is true
    end
  end

  def test_explain_says_why_records_are_loaded
    parcels, labels = resources(:state)
    assert_includes parcels.document.explain, "id: state is not written as it stands in the row"
    assert_includes labels.document.explain, "parcel: it cannot be read as rows: state, the id of parcels, is not written as it stands"
    resources(:sent_on).each { |resource| refute_includes resource.document.explain, "because" }
  end

  def test_the_models_say_the_same
    COLUMNS.each do |column|
      resources(column).each do |resource|
        assert_predicate Castellan.verify { resource.render(include: resource.definition.relationships.keys.first.name) }, :same?, column
      end
    end
  end

  private

  def ids(column) = parcel_scope.map { |parcel| parcel.public_send(column).to_s }

  def parcel_scope = world::Parcel.order(:id)

  def resources(column)
    world = self.world
    parcels = Class.new(Castellan::Resource)
    labels = Class.new(Castellan::Resource) do
      model world::Label
      type :labels
      attributes :text
      belongs_to :parcel, resource: parcels
    end
    parcels.class_eval do
      model world::Parcel
      type :parcels
      id column
      has_many :labels, resource: labels
    end
    [parcels, labels]
  end
end

class IdsOfAnyColumnOnSqliteTest < Minitest::Test
  include IdsOfAnyColumnContract
  include ActiveRecordWorld::OnSqlite
end

class IdsOfAnyColumnOnPostgresTest < Minitest::Test
  include IdsOfAnyColumnContract
  include ActiveRecordWorld::OnPostgres
end

# The same of a model of Sequel.
class IdsOfAnyColumnOnSequelTest < Minitest::Test
  def setup
    @database = Sequel.sqlite
    @database.create_table(:parcels) do
      primary_key :id
      column :weight, "decimal(8, 2)"
      column :sent_on, Date
      column :heavy, TrueClass
    end
    2.times { |number| @database[:parcels].insert(weight: number + 1.5, sent_on: Date.new(2024, 2, number + 1), heavy: number == 1) }
    @model = Class.new(Sequel::Model(@database[:parcels]))
  end

  def teardown
    @database.disconnect
  end

  def test_the_id_is_the_text_of_what_the_reader_answers
    %i[weight sent_on heavy].each do |column|
      parcels = Class.new(Castellan::Resource).tap { |resource| resource.type("parcels") && resource.model(@model) && resource.id(column) }
      scope = @model.order(:id)
      [scope, scope.all].each do |given|
        written = JSON.parse(parcels.render(given))["data"].map { |one| one["id"] }
        assert_equal(scope.map { |parcel| parcel.public_send(column).to_s }, written, column)
      end
    end
  end
end
