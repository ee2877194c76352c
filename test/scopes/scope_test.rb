# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/mock_request"
require_relative "world"

# The scope of a resource holds wherever its rows are read: one test for each of the ways that lead to them.
module ScopeContract
  ROWS = {
    guilds: [{ id: 1, name: "Rose", level: 1 }, { id: 2, name: "Thorn", level: 2 }],
    knights: [{ id: 1, name: "Ada", level: 1, guild_id: 1 }, { id: 2, name: "Bors", level: 2, guild_id: 2, liege_id: 1 },
              { id: 3, name: "Cai", level: 3, guild_id: 1, liege_id: 2 }, { id: 4, name: "Dag", level: 1, guild_id: 2, liege_id: 2 }],
    quests: [{ id: 1, name: "Grail", level: 1, knight_id: 1 }, { id: 2, name: "Dragon", level: 2, knight_id: 2 }],
    rides: [], steeds: []
  }.freeze

  def setup = world.fill(ROWS)

  def test_collections_single_records_and_counts
    assert_equal [%w[1 3], 2], [ids(knights, viewer: 1), meta(knights, viewer: 1)]
    assert_equal [%w[2 4], 2], [ids(knights, viewer: 2), meta(knights, viewer: 2)]
    assert_equal [200, 404], [3, 4].map { |id| knights.document(id: id, viewer: 1).status }
    assert_equal %w[3], ids(knights, viewer: 1, query: { page: { number: 2, size: 1 } })
  end

  def test_without_a_viewer_the_block_gets_nil
    assert_empty ids(knights)
    assert_equal 404, knights.document(id: 1).status
  end

  def test_a_relation_of_the_caller_is_narrowed
    given = world.models[:knights].where(id: [2, 3, 4])
    assert_equal %w[3], ids(knights, given, viewer: 1)
    assert_equal %w[1], ids(knights, world.models[:knights].order(:id).limit(1), viewer: 1)
  end

  def test_includes_linkage_and_paths
    document = parsed(guilds, viewer: 1, include: "knights.liege")
    assert_equal [%w[1 3], []], document["data"].map { |guild| guild.dig("relationships", "knights", "data").map { |link| link["id"] } }
    assert_equal %w[1 3], document["included"].map { |knight| knight["id"] }.sort
    cai = document["included"].find { |knight| knight["id"] == "3" }
    assert_equal [nil, { "data" => nil }], [cai["attributes"]["liege_name"], cai["relationships"]["liege"]]
    assert_equal([[nil, nil], [nil, "Bors"]], [1, 2].map { |viewer| liege_names(viewer) })
  end

  def test_given_records_are_queried_again
    all = world.models[:knights].order(:id).all.to_a
    assert_equal %w[1 3], ids(knights, all, viewer: 1)
    assert_equal [200, 404, 404],
                 [knights.document(all[0], viewer: 1), knights.document(all[1], viewer: 1), knights.document(all[0])].map(&:status)
    assert_equal '{"data":null}', knights.render(all[1], viewer: 1)
    assert_equal 1, queries { knights.render(all, viewer: 1, fields: { knights: "name" }) }.size
  end

  def test_loaded_associations_are_queried_again
    guild = preloaded(:guilds, :knights)
    document = JSON.parse(guilds.render(guild, viewer: 1, include: "knights"))
    assert_equal([%w[1 3], []], document["data"].map { |one| one.dig("relationships", "knights", "data").map { |link| link["id"] } })
    assert_equal %w[1 3], document["included"].map { |knight| knight["id"] }.sort
  end

  def test_what_a_block_of_a_relationship_returns
    knights = knights()
    model = world.models[:knights]
    resource = resource(:guilds, "GuildResource") {
      has_many(:all_knights, resource: -> {
        knights
      }) { |_guild| model.order(:id).all.to_a }
    }
    assert_equal [%w[1 3]], parsed(resource, viewer: 1)["data"].map { |one|
      one.dig("relationships", "all_knights", "data").map { |link|
        link["id"]
      }
    }.uniq
  end

  def test_ids_that_several_rows_have_hide_nothing_behind_their_number
    world.run("UPDATE knights SET name = 'Ada' WHERE id = 3")
    knights = resource(:knights, "KnightResource") do
      id :name
      scope { |all, viewer| all.where(guild_id: viewer) }
    end
    quests = resource(:quests, "QuestResource") { belongs_to :knight, resource: -> { knights } }
    assert_equal(["Ada", nil], parsed(quests, viewer: 1)["data"].map { |quest| quest.dig("relationships", "knight", "data", "id") })
  end

  def test_a_filter_gets_the_rows_that_the_viewer_may_see
    assert_equal [%w[3], []], [1, 2].map { |viewer| ids(knights, viewer: viewer, filter: { name: "Cai" }) }
  end

  def test_a_filter_that_ignores_its_relation_cannot_widen_the_scope
    model = world.models[:knights]
    resource = Class.new(knights) { filter(:any) { |_, names| model.where(name: names) } }
    assert_equal [%w[1], []], [1, 2].map { |viewer| ids(resource, viewer: viewer, filter: { any: "Ada" }) }
  end

  def test_a_filter_may_ask_for_what_the_viewer_may_see_of_another_resource
    knights = knights()
    resource = resource(:quests, "QuestResource") do
      filter(:knight) { |all, names, viewer| all.where(knight_id: knights.visible_to(viewer).where(name: names).select(:id)) }
    end
    assert_equal [%w[1], []], [1, 2].map { |viewer| ids(resource, viewer: viewer, filter: { knight: "Ada" }) }
  end

  def test_streams_and_verification
    document = knights.document(viewer: 1, include: "guild,liege")
    assert_equal document.to_json, knights.document(viewer: 1, include: "guild,liege").stream(size: 1).each.to_a.join
    result = Castellan.verify { guilds.render(viewer: 1, include: "knights.liege") }
    assert_equal [[], 1], [result.differences.map(&:to_s), result.documents]
  end

  def test_a_batch_for_the_viewer_gets_the_ids_that_the_viewer_may_see
    ids_given = []
    resource = resource(:knights, "KnightResource") do
      per_viewer(:mine) { |ids, _| ids.tap { ids_given.concat(ids) } }
      scope { |all, viewer| all.where(guild_id: viewer) }
    end
    resource.render(viewer: 2)
    assert_equal [2, 4], ids_given.sort
  end

  def test_a_scope_that_returns_no_relation_of_the_model_is_refused
    other = world.models[:guilds]
    answers = { nil => "returned nil", [] => "an object of Array", other => other.name || "a class",
                other.where(id: 1) => "returned an object" }
    answers.each do |answer, text|
      error = assert_raises(Castellan::DeclarationError) { resource(:knights, "KnightResource") { scope { |_, _| answer } }.render }
      assert_includes error.message, text
      assert_includes error.message, "relation.none where the viewer may see nothing"
      assert_includes error.message, "scope_test.rb:"
    end
  end

  def test_a_scope_without_a_block_or_a_model_is_refused
    assert_raises(Castellan::DeclarationError) { resource(:knights, "KnightResource") { scope } }
    homeless = Class.new(Castellan::Resource) do
      type "x"
      scope { |all, _| all }
    end
    assert_includes assert_raises(Castellan::DeclarationError) { homeless.definition }.message, "scope needs a model"
  end

  def test_a_scope_that_hides_nothing_costs_nothing
    plain = resource(:knights, "KnightResource") { attribute :name }
    open = resource(:knights, "KnightResource") do
      attribute :name
      scope { |all, _| all }
    end
    assert_equal queries { plain.render }, queries { open.render }
  end

  # A value of the application may look like what stands for a key in the statement of a path.
  def test_a_value_of_a_scope_is_a_value_whatever_it_looks_like
    number = Castellan::Rows::Association::OwnerKey::NUMBER
    knights = resource(:knights, "KnightResource") { attribute :name }
    knights = Class.new(knights) { scope { |all, _| all.where(name: number.to_s) } }
    resource = resource(:quests, "QuestResource") do
      attribute :knight_name, from: "knight.name"
      belongs_to :knight, resource: -> { knights }
    end
    assert_equal [nil], parsed(resource)["data"].map { |one| one["attributes"]["knight_name"] }.uniq
  end

  def test_kept_documents_of_one_scope_are_shared_and_of_two_are_not
    keeper = keeper()
    first, again, other = [1, 1, 2].map { |viewer| guilds.document(viewer: viewer, include: "knights", keeper: keeper) }
    assert_equal [first.to_json, first.etag], [again.to_json, again.etag]
    refute_equal [first.etag, first.to_json], [other.etag, other.to_json]
    refute_includes other.to_json, "Cai"
    assert_empty queries { guilds.render(viewer: 1, include: "knights", keeper: keeper) }.grep(/FROM .?knights/)
    linked = [1, 2].map { |viewer| guilds.document(viewer: viewer, keeper: keeper) }
    refute_equal(*linked.map(&:etag))
    refute_equal(*linked.map(&:to_json))
  end

  def test_a_write_to_a_table_of_the_scope_of_an_included_resource_is_seen
    quests = resource(:quests, "QuestResource") { attribute :name }
    quests = Class.new(quests) { scope(&ScopeContract.of_brave_knights) }
    knights = resource(:knights, "KnightResource") do
      has_many :quests, resource: -> { quests }
      cache :exact
    end
    keeper = keeper()
    assert_includes knights.render(include: "quests", keeper: keeper), "Dragon"
    world.run("UPDATE guilds SET level = 0")
    refute_includes knights.render(include: "quests", keeper: keeper), "Dragon"
  end

  def test_an_endpoint_narrows_further_and_holds_for_its_own_reads
    knights = knights()
    model = world.models[:knights]
    app = Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"]&.to_i }
      resource knights
      resource knights, at: "/lieges", scope: ->(_viewer) { model.where(id: [1, 2]) }
    end
    assert_equal [%w[1 3], %w[1]], ["/knights", "/lieges"].map { |path| ids_of(get(app, path)) }
    assert_equal [200, 404, 200, 404, 404], %w[/knights/3 /knights/2 /lieges/1 /lieges/2 /lieges/3].map { |path| get(app, path).status }
    page = JSON.parse(get(app, "/knights?page[size]=1").body)
    assert_equal [2, "/knights?page%5Bnumber%5D=2&page%5Bsize%5D=1"], [page["meta"]["total"], page["links"]["last"]]
  end

  def test_explain_shows_where_a_scope_applies
    explained = guilds.document(viewer: 1, include: "knights").explain
    assert_match(/scope of KnightResource: .*knights.*IN \(SELECT .*guild_id.* = 1\)/, explained)
    assert_match(/liege: linkage only, no record of knights is loaded; .*IN \(SELECT/, explained)
  end

  def test_the_rows_that_a_viewer_may_see_are_a_relation
    assert_equal [1, 3], knights.visible_to(1).order(:id).map(&:id)
  end

  # Joins, because a subquery would be the same in both libraries.
  def self.of_brave_knights
    lambda do |all, _|
      brave = "SELECT knights.id FROM knights INNER JOIN guilds ON guilds.id = knights.guild_id WHERE guilds.level > 1"
      sql = "quests.knight_id IN (#{brave})"
      all.where(defined?(Sequel::Dataset) && all.is_a?(Sequel::Dataset) ? Sequel.lit(sql) : sql)
    end
  end

  def test_the_sql_of_a_path_is_kept_and_shows_each_viewer_its_own_rows
    knights = knights_of_lieges
    read = lambda do |viewer, **query|
      parsed(knights, viewer: viewer, **query)["data"].map { |one| [one["id"].to_i, *one["attributes"].values] }
    end
    check = lambda do |viewer|
      expected = lieges_of(viewer)
      assert_equal expected, read.call(viewer).sort, viewer.inspect
      %w[Ada Bors].each do |name|
        assert_equal expected.select { |row| row[1] == name }, read.call(viewer, filter: { liege_name: name }).sort, viewer.inspect
      end
      assert_equal expected.filter_map { |row| row[1] }.sort, read.call(viewer, sort: "liege_name").filter_map { |row| row[1] }
    end
    [1, 2, :all, 1, nil, 2, 2, :all, :all, 1, nil, nil].each(&check)
    [1, 2, :all, nil].map { |viewer| Thread.new { 5.times { check.call(viewer) } } }.each(&:join)
  end

  def test_a_scope_along_a_path_costs_little_more_than_none
    all, seen = %i[all seen].map do |kind|
      knights = knights_of_lieges(scoped: kind == :seen)
      3.times { |viewer| knights.render(viewer: viewer) }
      allocated_objects { knights.render(viewer: 1) }
    end
    assert_operator seen, :<, all + 150
  end

  private

  def knights_of_lieges(scoped: true)
    lieges = nil
    lieges = resource(:knights, "LiegeResource") do
      attribute :name
      belongs_to :liege, resource: -> { lieges }, include: false
      scope { |all, viewer| viewer == :all ? all : all.where(guild_id: viewer) } if scoped
    end
    resource(:knights, "KnightResource") do
      attribute :liege_name, from: "liege.name"
      attribute :lord_name, from: "liege.liege.name"
      belongs_to :liege, resource: -> { lieges }, include: false
      filter :liege_name, from: "liege.name"
      sort :liege_name, from: "liege.name"
    end
  end

  def lieges_of(viewer)
    knights = ScopeContract::ROWS[:knights]
    liege = ->(row) { knights.find { |one| one[:id] == row&.dig(:liege_id) && (viewer == :all || one[:guild_id] == viewer) } }
    knights.map { |row| [row[:id], liege.call(row)&.fetch(:name), liege.call(liege.call(row))&.fetch(:name)] }
  end

  def resource(table, name, &block)
    model = world.models[table]
    Class.new(Castellan::Resource) do
      define_singleton_method(:name) { name }
      model model
      type table.name
      class_eval(&block)
    end
  end

  def knights
    @knights ||= begin
      own = nil
      guilds = method(:guilds)
      own = resource(:knights, "KnightResource") do
        scope { |all, viewer| all.where(guild_id: viewer) }
        attribute :name
        attribute :liege_name, from: "liege.name"
        belongs_to :liege, resource: -> { own }
        belongs_to :guild, resource: -> { guilds.call }
        filter(:name) { |all, names| all.where(name: names) }
        sort :name, default: "name"
        page size: 10, count: true
      end
    end
  end

  def guilds
    knights = method(:knights)
    @guilds ||= resource(:guilds, "GuildResource") do
      attribute :name
      has_many :knights, resource: -> { knights.call }
      sort :name, default: "name"
      cache :exact
    end
  end

  def liege_names(viewer) = parsed(knights, viewer: viewer)["data"].map { |one| one["attributes"]["liege_name"] }

  def keeper
    versions = Castellan::Versions::ExactVersions.new(world.database)
    versions.install(%w[guilds knights quests])
    Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)
  end

  def parsed(resource, ...) = JSON.parse(resource.render(...))
  def ids(...) = parsed(...)["data"].map { |object| object["id"] }
  def meta(...) = parsed(...).dig("meta", "total")
  def get(app, path) = Rack::MockRequest.new(app).get(path, "HTTP_AUTHORIZATION" => "1")
  def ids_of(response) = JSON.parse(response.body)["data"].map { |object| object["id"] }
  def queries(&block) = world.queries(&block)
end

# What ActiveRecord alone has.
module ScopeOfActiveRecord
  def test_a_class_of_single_table_inheritance
    world.run("UPDATE knights SET type = '#{world.paladin.name}' WHERE id IN (2, 3)")
    paladins = Class.new(knights) { type "paladins" }
    paladins.model(world.paladin)
    assert_equal [%w[3], %w[2]], [1, 2].map { |viewer| ids(paladins, viewer: viewer) }
    assert_equal [%w[1 3], 200, 404],
                 [ids(knights, viewer: 1), paladins.document(id: 3, viewer: 1).status, paladins.document(id: 1, viewer: 1).status]
  end

  def test_a_key_of_two_columns
    world.run("DELETE FROM stalls")
    world.run("INSERT INTO stalls (town, number, guild_id, level) VALUES (1, 1, 1, 1), (1, 2, 1, 2), (2, 1, 2, 1)")
    stalls = resource(:guilds, "StallResource") { scope { |all, viewer| all.where(level: viewer) } }
    stalls.model(world.stall) && stalls.type("stalls")
    guilds = resource(:guilds, "GuildResource") { has_many :stalls, resource: -> { stalls } }
    [:all, preloaded(:guilds, :stalls)].each do |given|
      document = parsed(guilds, given, viewer: 1, include: "stalls")
      assert_equal([%w[1_1], %w[2_1]], document["data"].map { |one| one.dig("relationships", "stalls", "data").map { |link| link["id"] } })
      assert_equal %w[1_1 2_1], document["included"].map { |one| one["id"] }.sort
      assert_equal([%w[1_2], []], parsed(guilds, given, viewer: 2)["data"].map { |one|
        one.dig("relationships", "stalls", "data").map { |link| link["id"] }
      })
    end
    assert_equal [%w[1_2], 404, 200], [ids(stalls, viewer: 2), *%w[1_1 1_2].map { |id| stalls.document(id: id, viewer: 2).status }]
    assert_equal %w[1_2], ids(stalls, world.stall.all.to_a, viewer: 2)
  end

  def test_associations_under_another_name_and_paths_through_them
    quests = quests_under_another_name
    document = parsed(quests, viewer: 2)
    assert_equal [[nil, nil], %w[Bors 2]], document["data"].map { |one|
      [one["attributes"]["by"], one.dig("relationships", "hero", "data", "id")]
    }
  end

  private

  def quests_under_another_name
    knights = knights()
    resource(:quests, "QuestResource") do
      attribute :by, from: "knight.name"
      belongs_to :hero, from: :knight, resource: -> { knights }
    end
  end
end

class ScopeOnActiveRecordTest < Minitest::Test
  include ScopeContract
  include ScopeOfActiveRecord

  def world = ScopesWorld.active_record(:sqlite)
  def preloaded(table, name) = world.models[table].preload(name).order(:id).to_a
end

class ScopeOnActiveRecordAndPostgresTest < Minitest::Test
  include ScopeContract
  include ScopeOfActiveRecord

  def setup
    needs :postgres
    super
  end

  def world = ScopesWorld.active_record(:postgres)
  def preloaded(table, name) = world.models[table].preload(name).order(:id).to_a
end

class ScopeOnSequelTest < Minitest::Test
  include ScopeContract

  def world = ScopesWorld.sequel(:sqlite)
  def preloaded(table, name) = world.models[table].eager(name).order(:id).all
end

class ScopeOnSequelAndPostgresTest < Minitest::Test
  include ScopeContract

  def setup
    needs :postgres
    super
  end

  def world = ScopesWorld.sequel(:postgres)
  def preloaded(table, name) = world.models[table].eager(name).order(:id).all
end
