# frozen_string_literal: true

require "test_helper"
require_relative "sequel_kinds_world"

# For each association and type, rows, models and given records write the values that Sequel's objects return.
module SequelKindsContract
  KINDS = {
    Knight: %i[liege vassals quests crest_quests heaviest second two_lightest next_two grave own_or_gravest gravest own_or_grave
               crest_knight own_crest conditional shared first_shared fellow_rides steeds],
    Quest: %i[knight herald companions rides], Ride: %i[steed], Steed: %i[rides knight]
  }.freeze
  # Sequel's eager loading raises for a block that takes the owner, and finds other records for one with an `or`.
  NOT_EAGER = %i[own_crest own_or_gravest gravest own_or_grave].freeze
  THROUGH_MODELS = { Knight: %i[own_crest steeds], Ride: %i[steed], Steed: %i[rides knight] }.freeze

  def setup
    %i[companions rides steeds quests knights relics].each { |table| world::DB[table].delete }
    seed
  end

  KINDS.each do |model, names|
    names.each do |name|
      define_method("test_#{name}_of_#{model.downcase}_is_what_the_record_answers") do
        resource = relating(model, name)
        expected = expected(model, name)
        refute_empty expected.values.flatten
        eager = NOT_EAGER.include?(name) ? all(model).all : all(model).eager(name).all
        [all(model), all(model).all, eager].each do |given|
          assert_equal expected, links(resource, given, name), "linked"
          assert_equal expected, links(resource, given, name, include: name.to_s), "linked beside what is included"
        end
        explained = resource.document(all(model)).explain
        assert_equal THROUGH_MODELS.fetch(model, []).include?(name), explained.include?("models of this type"), explained
      end
    end
  end

  def test_each_value_of_rows_and_records_equals_that_of_the_model
    names = world::Relic.columns - %i[id points]
    resource = Class.new(Castellan::Resource) { attributes(*names) }
    resource.model(world::Relic)
    expected = world::Relic.order(:id).map { |relic| names.to_h { |name| [name.name, plain(relic.public_send(name))] } }
    [world::Relic.order(:id), world::Relic.order(:id).all].each do |given|
      assert_equal(expected, JSON.parse(resource.render(given))["data"].map { |one| one["attributes"] })
    end
    refute_includes resource.document(world::Relic.order(:id)).explain, "models of this type"
  end

  def test_a_serialized_attribute_loads_models_for_the_type
    resource = Class.new(Castellan::Resource) { attributes :points, :name }
    resource.model(world::Relic)
    assert_equal([{ "points" => [1, 2], "name" => "grail" }, { "points" => nil, "name" => "\"<&>\u2028" }],
                 JSON.parse(resource.render(world::Relic.order(:id)))["data"].map { |one| one["attributes"] })
    assert_includes resource.document.explain, "reads points by its own method ("
  end

  def test_a_serialized_attribute_with_stored_is_its_column
    resource = Class.new(Castellan::Resource) { attributes :points, :name, as_stored: true }
    resource.model(world::Relic)
    relics = world::Relic.order(:id)
    expected = relics.map { |relic| relic.values[:points] }
    [relics, relics.all].each do |given|
      assert_equal(expected, JSON.parse(resource.render(given))["data"].map { |one| one["attributes"]["points"] })
    end
    refute_includes resource.document(relics).explain, "models of this type"
  end

  def test_composite_keys_are_joined
    resource = Class.new(Castellan::Resource) { attributes :name }
    resource.model(world::Steed)
    assert_equal(%w[1_1 1_2], JSON.parse(resource.render)["data"].map { |one| one["id"] }.sort)
    assert_equal "Grane", JSON.parse(resource.render(id: "1_2"))["data"]["attributes"]["name"]
    assert_equal '{"data":null}', resource.render(id: "x_2")
  end

  WEIGHTS = [1, 3, 3, 1, 5, 5, 5, 1, 3].freeze # twice in a row, so that SQL is kept

  %i[block_quests method_quests delayed_quests kept_quests chosen_quests shared_quests shared_kept_quests
     shared_chosen_quests block_quest].each do |name|
    define_method("test_kept_sql_of_#{name}_has_the_conditions_of_the_present_request") do
      resource = relating(:Knight, name)
      found = WEIGHTS.map do |weight|
        with_weight(weight) do
          assert_equal expected(:Knight, name), links(resource, all(:Knight), name)
          links(resource, all(:Knight), name, include: name.to_s)
        end
      end
      assert_equal(WEIGHTS.map { |weight| with_weight(weight) { expected(:Knight, name) } }, found)
    end
  end

  def test_filters_and_attributes_of_a_path_have_the_conditions_of_the_present_request
    resource = resource_of(world::Knight)
    resource.attribute :title, from: "block_quest.title"
    resource.filter :title, from: "block_quest.title"
    resource.sort :title, from: "block_quest.title", default: "title"
    WEIGHTS.each do |weight|
      with_weight(weight) do
        quests = all(:Knight).filter_map { |knight| knight.block_quest && [knight.id.to_s, knight.block_quest.title] }.sort_by(&:reverse)
        read = JSON.parse(resource.render(filter: { title: %w[w1 w3 w5] }))["data"]
        assert_equal(quests, read.map { |one| [one["id"], one["attributes"]["title"]] })
      end
    end
  end

  def test_the_sql_of_conditions_is_kept
    plain, *others = %i[quests conditional block_quests kept_quests].map { |name| objects_of(name) }
    others.each { |objects| assert_operator objects, :<, plain * 2 }
    plain, *others = %i[shared shared_quests shared_kept_quests].map { |name| objects_of(name) }
    others.each { |objects| assert_operator objects, :<, plain * 2 }
  end

  private

  def objects_of(name)
    resource = relating(:Knight, name)
    with_weight(3) do
      4.times { resource.render(include: name.to_s) }
      allocated_objects { resource.render(include: name.to_s) }
    end
  end

  def with_weight(weight)
    Thread.current[:weight] = weight
    yield
  ensure
    Thread.current[:weight] = nil
  end

  def relating(model, name)
    reflection = world.const_get(model).association_reflection(name)
    target = resource_of(reflection.associated_class)
    resource = resource_of(world.const_get(model))
    resource.public_send(reflection.returns_array? ? :has_many : :has_one, name, resource: target)
    resource
  end

  def resource_of(model)
    Class.new(Castellan::Resource) do
      model model
      type model.name.split("::").last.downcase
    end
  end

  def all(name)
    model = world.const_get(name)
    model.order(*Array(model.primary_key))
  end

  def id_of(record) = Array(record.pk).join("_")

  def expected(model, name)
    order = world.const_get(model).association_reflection(name)[:order]
    all(model).all.to_h do |record|
      ids = [record.public_send(name)].flatten.compact.map { |found| id_of(found) }
      [id_of(record), order ? ids : ids.sort]
    end
  end

  def links(resource, given, name, **options)
    order = resource.definition.model.association_reflection(name)[:order]
    JSON.parse(resource.render(given, **options))["data"].to_h do |one|
      ids = [one["relationships"][name.to_s]["data"]].flatten.compact.map { |link| link["id"] }
      [one["id"], order ? ids : ids.sort]
    end
  end

  # Formats a value as ActiveSupport (loaded in these tests) does, except that times of a machine in UTC are
  # UTC, and times of day have no date.
  def plain(value)
    return value.to_s if value.is_a?(Sequel::SQLTime)

    value = value.getutc if value.instance_of?(Time) && value.zone == "UTC"
    JSON.parse(defined?(ActiveSupport::JSON) ? ActiveSupport::JSON.encode(value) : Castellan::Rows::JSONValue.text(value))
  end

  def seed
    knights = %w[Lancelot Galahad Percival].map { |name| world::Knight.create(name: name, crest: "#{name[0]},1") }
    knights[1].update(liege_id: knights[0].id)
    knights[2].update(liege_id: knights[0].id)
    quests = [[0, 1], [0, 4], [0, 3], [1, 2], [1, 5], [2, 1]].map do |knight, weight|
      world::Quest.create(title: "w#{weight}", weight: weight, knight_id: knights[knight].id, crest: knights[(knight + weight) % 3].crest)
    end
    [[0, 3], [0, 1], [1, 0], [2, 3]].each do |knight, quest|
      world::DB[:companions].insert(knight_id: knights[knight].id, quest_id: quests[quest].id)
    end
    world::Steed.unrestrict_primary_key
    world::Steed.create(stall: 1, place: 1, name: "Bayard", knight_id: knights[0].id)
    world::Steed.create(stall: 1, place: 2, name: "Grane", knight_id: knights[1].id)
    [[0, 1], [1, 2], [3, 1]].each do |quest, place|
      world::Ride.create(quest_id: quests[quest].id, stall: knights[place].id, place: place)
    end
    world::DB[:rides].insert(quest_id: quests[0].id, stall: 1, place: 1)
    world::DB[:rides].insert(quest_id: quests[2].id, stall: 1, place: 2)
    relics
  end

  def relics
    world::Relic.create(whole: -7, large: 2**62, name: "grail", story: "line\nline\u0001", holy: true, weight: 0.1 + 0.2,
                        price: BigDecimal("12.50"), found_on: Date.new(2024, 2, 29), seen_at: Time.utc(2024, 1, 31, 10, 20, 30.1239r),
                        raw: Sequel.blob("bytes"), points: [1, 2], **special)
    world::Relic.create(name: "\"<&>\u2028")
  end

  def special
    return {} unless world::DB.database_type == :postgres

    { document: Sequel.pg_jsonb({ "k" => [1, 2.5, nil] }), plain_document: Sequel.pg_json([1]),
      token: "c0de0000-0000-4000-8000-000000000001", zoned_at: Time.utc(2024, 8, 1, 12, 0, 0.5r),
      words: Sequel.pg_array(["a,b", "c\"d", nil]), numbers: Sequel.pg_array([1, nil], :integer),
      address: "10.0.0.1", span: "1 day 02:00:00", daily_at: "13:14:15" }
  end
end

class SequelKindsOnSqliteTest < Minitest::Test
  include SequelKindsContract

  def world = SequelKindsWorld.sqlite

  # SQLite compares a number with a text column; Sequel's eager loading does not.
  def test_an_integer_key_with_a_text_foreign_key
    pages, chapters = models_of_mixed_keys
    %i[pages first_page shared].each do |name|
      resource = Class.new(Castellan::Resource) do
        model chapters
        type "chapters"
        has_many name, resource: pages
      end
      expected = chapters.order(:id).to_h { |chapter| [chapter.id.to_s, chapter.public_send(name).map { |page| page.id.to_s }] }
      assert_equal [name == :pages ? 2 : 1] * 2, expected.values.map(&:size)
      some = chapters.order(:id).all.tap { |all| all.first.public_send(name) }
      [chapters.order(:id), chapters.order(:id).all, some].each do |given|
        assert_equal expected, links_by_id(resource.render(given, include: name.to_s), name), name
      end
      assert_includes resource.document.explain, "are of different types"
      refute Castellan::Rows.for(chapters).instances.loads_at_once?(name)
    end
  end

  private

  def links_by_id(text, name)
    JSON.parse(text)["data"].to_h { |one| [one["id"], one["relationships"][name.to_s]["data"].map { |link| link["id"] }] }
  end

  # @return [Array(Class, Class)] the resource of the pages and the model of the chapters
  def models_of_mixed_keys
    database = world::DB
    database.create_table!(:chapters) { primary_key :id }
    database.create_table!(:pages) do
      primary_key :id
      String :chapter_id
    end
    database.create_table!(:chapter_pages) do
      String :chapter_id
      Integer :page_id
    end
    [1, 2].each do |id|
      database[:chapters].insert
      2.times { database[:pages].insert(chapter_id: id) }
      database[:chapter_pages].insert(chapter_id: id, page_id: id)
    end
    page = Class.new(Sequel::Model(database[:pages]))
    chapter = Class.new(Sequel::Model(database[:chapters]))
    chapter.one_to_many :pages, class: page, key: :chapter_id, order: :id
    chapter.one_to_many :first_page, class: page, key: :chapter_id, order: :id, limit: 1
    chapter.many_to_many :shared, class: page, join_table: :chapter_pages, left_key: :chapter_id, right_key: :page_id
    pages = Class.new(Castellan::Resource) do
      model page
      type "pages"
    end
    [pages, chapter]
  end
end

class SequelKindsOnPostgresTest < Minitest::Test
  include SequelKindsContract

  def setup
    needs :postgres
    super
  end

  def world = SequelKindsWorld.postgres
end
