# frozen_string_literal: true

require "test_helper"
require "support/model_document"
require "sequel"
require_relative "../rows/active_record_world"

# Any column may be the id; the id is the text of the record reader's value, wherever it is written.
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
        table.decimal :number, precision: 20, scale: 0
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
      class Greeted < Base
        self.table_name = "parcels"
        after_find { self.ratio = 7 }
        after_initialize { self.heavy = true }
        has_many :labels, foreign_key: :parcel_id, inverse_of: false
      end
      class GreetedLabel < Base
        self.table_name = "labels"
        belongs_to :parcel, class_name: name.sub("GreetedLabel", "Greeted")
      end
    RUBY
  end

  COLUMNS = %i[weight sent_on sent_at heavy ratio state code slug digest number].freeze

  def setup
    [world::Label, world::Parcel].each(&:delete_all)
    2.times do |number|
      parcel = world::Parcel.create!(weight: number + 1.5, sent_on: "2024-02-0#{number + 1}", sent_at: "2024-02-01 10:00:0#{number}.123456",
                                     heavy: number == 1, ratio: number + 0.25, state: number, code: "<a_#{number}>", slug: "s#{number}",
                                     digest: "d#{number}", number: (10**15) + number)
      parcel.labels.create!(text: "L#{number}")
    end
  end

  def test_the_id_is_the_text_of_the_value_of_the_reader
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
      [world::Label.order(:id), world::Label.order(:id).to_a, world::Label.order(:id).preload(:parcel).to_a].each do |scope|
        document = JSON.parse(labels.render(scope, include: "parcel"))
        assert_equal ids(column), document["data"].map { |one| one["relationships"]["parcel"]["data"]["id"] }, column
        assert_equal ids(column), document["included"].map { |one| one["id"] }, column
      end
    end
  end

  def test_a_record_is_found_by_its_id
    { weight: "2.5", sent_on: "2024-02-02", sent_at: "2024-02-01 10:00:01.123456 UTC", heavy: "true", ratio: "1.25", state: "sent",
      code: "<a_1>", number: "1000000000000001" }.each do |column, id|
      parcels, = resources(column)
      assert_equal id, JSON.parse(parcels.document(id: id).to_json)["data"]["id"], column
      assert_equal 404, parcels.document(id: "nobody").status, column
    end
  end

  def test_another_spelling_of_a_value_is_not_its_id
    { weight: "2.50", heavy: "t", state: "1", sent_at: "2024-02-01 10:00:01 UTC" }.each do |column, id|
      assert_equal 404, resources(column).first.document(id: id).status, column
    end
  end

  def test_the_empty_text_is_not_the_id_of_a_record_without_one
    world::Parcel.update_all(weight: nil, sent_at: nil)
    %i[weight sent_at].each { |column| assert_equal 404, resources(column).first.document(id: "").status, column }
  end

  def test_times_within_one_second_are_distinct_ids
    world::Parcel.order(:id).each.with_index(1) { |parcel, number| parcel.update!(sent_at: "2024-02-01 10:00:00.#{number}") }
    parcels, labels = resources(:sent_at)
    ids = JSON.parse(parcels.render(parcel_scope))["data"].map { |one| one["id"] }
    assert_equal ["2024-02-01 10:00:00.1 UTC", "2024-02-01 10:00:00.2 UTC"], ids
    assert_equal ids, JSON.parse(labels.render(include: "parcel"))["included"].map { |one| one["id"] }.sort
    ids.each { |id| assert_equal id, JSON.parse(parcels.document(id: id).to_json)["data"]["id"] }
    assert_equal ids.last, JSON.parse(parcels.document(id: "2024-02-01 19:00:00.2 +0900").to_json)["data"]["id"], "another zone's"
  end

  def test_an_integer_without_a_scale_is_written_as_in_the_row
    resources(:number).each { |resource| assert_kind_of Symbol, resource.tap(&:checked_rows).definition.id_column }
  end

  def test_after_initialize_callbacks_do_not_affect_keys
    parcels, labels = resources(:id, parcel: world::Greeted, label: world::GreetedLabel)
    scope = world::GreetedLabel.order(:id)
    counts = observed { labels.render(scope) }
    assert_equal({ statements: 1, records: 0 }, counts)
    document = labels.document(scope)
    assert_predicate document.stream, :divided?
    assert_includes document.explain, "no record of parcels is loaded"
    assert_match(/^tables: .*labels/, document.explain)
    assert_equal 0, observed { parcels.render(world::Greeted.order(:id), fields: { parcels: "labels" }) }[:records]
  end

  def test_a_per_viewer_batch_receives_the_ids_of_an_enum
    given = nil
    world = self.world
    parcels = Class.new(Castellan::Resource) do
      model world::Parcel
      type :parcels
      id :state
      per_viewer(:mine) { |ids, _| (given = ids).first(1) }
    end
    written = JSON.parse(parcels.render(parcel_scope, viewer: 1))["data"].map { |one| one["attributes"]["mine"] }
    assert_equal [[true, false], %w[packed sent]], [written, given]
  end

  def test_a_resource_without_a_model_uses_the_ids_of_the_association
    parcels = Class.new(Castellan::Resource) { type(:parcels) && id(:weight) }
    world = self.world
    labels = Class.new(Castellan::Resource) do
      model world::Label
      type :labels
      belongs_to :parcel, resource: parcels
    end
    document = JSON.parse(labels.render(world::Label.order(:id), include: "parcel"))
    assert_equal %w[1.5 2.5], document["data"].map { |one| one["relationships"]["parcel"]["data"]["id"] }
    assert_equal %w[1.5 2.5], document["included"].map { |one| one["id"] }
  end

  def test_a_record_without_an_id_raises_with_the_fix
    %i[id state].each do |column|
      error = assert_raises(Castellan::EncodingError) { resources(column).first.render([world::Parcel.new]) }
      assert_includes error.message, "save the record, or name the column that identifies it"
    end
  end

  def test_explain_gives_the_reason_for_loading_records
    parcels, labels = resources(:state)
    assert_includes parcels.document.explain, "id: state is not written as it stands in the row"
    assert_includes labels.document.explain, "parcel: it cannot be read as rows: state, the id of parcels, is not written as it stands"
    refute_includes parcels.document.explain, "no record of labels is loaded"
    refute_includes labels.document.explain, "no record of parcels is loaded"
    resources(:sent_on).each { |resource| refute_includes resource.document.explain, "because" }
  end

  def test_rows_and_models_have_the_same_ids
    COLUMNS.each do |column|
      resources(column).each do |resource|
        include = resource.definition.relationships.keys.first.name
        assert_predicate Castellan.verify { resource.render(include: include) }, :same?, column
        assert_empty Castellan::TestSupport::ModelDocument.differences(resource.document(include: include)).map(&:to_s), column
      end
    end
  end

  private

  def ids(column) = parcel_scope.map { |parcel| parcel.public_send(column).to_s.sub(/:\d\d:\d\d/) { |clock| "#{clock}.123456" } }

  # @return [Hash] the number of statements and of instantiated records of the block
  def observed
    counts = { statements: 0, records: 0 }
    count = ->(*, payload) { counts[:statements] += 1 unless payload[:name] == "SCHEMA" }
    made = ->(*, payload) { counts[:records] += payload[:record_count] }
    ActiveSupport::Notifications.subscribed(count, "sql.active_record") do
      ActiveSupport::Notifications.subscribed(made, "instantiation.active_record") { yield }
    end
    counts
  end

  def parcel_scope = world::Parcel.order(:id)

  def resources(column, parcel: world::Parcel, label: world::Label)
    parcels = Class.new(Castellan::Resource)
    labels = Class.new(Castellan::Resource) do
      model label
      type :labels
      attributes :text
      belongs_to :parcel, resource: parcels
    end
    parcels.class_eval do
      model parcel
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

# The same for a model of Sequel.
class IdsOfAnyColumnOnSequelTest < Minitest::Test
  def setup
    @database = Sequel.sqlite
    @database.create_table(:parcels) do
      primary_key :id
      column :weight, "decimal(8, 2)"
      column :sent_on, Date
      column :heavy, TrueClass
      column :sent_at, DateTime
    end
    2.times do |number|
      @database[:parcels].insert(weight: number + 1.5, sent_on: Date.new(2024, 2, number + 1), heavy: number == 1,
                                 sent_at: Time.new(2024, 2, 1, 10, 0, Rational(number + 1, 4)))
    end
    @model = Class.new(Sequel::Model(@database[:parcels]))
  end

  def teardown
    @database.disconnect
  end

  def test_the_id_is_the_text_of_the_value_of_the_reader
    { weight: %w[1.5 2.5], sent_on: %w[2024-02-01 2024-02-02], heavy: %w[false true] }.each do |column, ids|
      [@model.order(:id), @model.order(:id).all].each { |given| assert_equal ids, written(column, given), column }
    end
  end

  def test_a_record_is_found_by_its_id
    %i[weight sent_on heavy sent_at].each do |column|
      written(column, @model.order(:id)).each do |id|
        assert_equal id, JSON.parse(parcels(column).document(id: id).to_json)["data"]["id"], column
      end
      assert_equal 404, parcels(column).document(id: "nobody").status, column
    end
  end

  def test_times_within_one_second_are_distinct_ids
    assert_equal %w[.25 .5], written(:sent_at, @model.order(:id)).map { |id| id[/\.\d+/] }
  end

  private

  def written(column, given) = JSON.parse(parcels(column).render(given))["data"].map { |one| one["id"] }

  def parcels(column)
    model = @model
    Class.new(Castellan::Resource) { type(:parcels) && model(model) && id(column) }
  end
end
