# frozen_string_literal: true

require "test_helper"
require_relative "world"
require_relative "reference"

# Random resources with random scopes over random rows, asked for random documents by random viewers: the document is the one that is
# worked out in Ruby. CASTELLAN_SCOPE_GRAPHS says how many graphs, CASTELLAN_SEED which.
module RandomScopeGraphs
  GRAPHS = Integer(ENV.fetch("CASTELLAN_SCOPE_GRAPHS") { Castellan::TestHelpers.all? ? 6 : 2 })
  SEED = Integer(ENV.fetch("CASTELLAN_SEED", "1"))
  DOCUMENTS = 8
  VIEWERS = [nil, 1, 2, 3].freeze
  # A scope: a block for ActiveRecord, one for Sequel, and the ids it leaves, in Ruby. Each has the viewer's number.
  SCOPES = {
    all: [->(all, _) { all }, ->(all, _) { all }, ->(rows, _, _) { rows }],
    none: [->(all, _) { all.none }, ->(all, _) { all.where(false) }, ->(_, _, _) { [] }],
    level: [->(all, n) { all.where(level: (n..)) }, ->(all, n) { all.where { level >= n } }, ->(rows, n, _) {
      rows.select { |row|
        row[:level] >= n
      }
    }],
    text: [->(all, n) { all.where("#{all.klass.table_name}.level % 3 <> ?", n % 3) },
           ->(all, n) { all.where(Sequel.lit("#{all.first_source}.level % 3 <> ?", n % 3)) },
           ->(rows, n, _) { rows.reject { |row| row[:level] % 3 == n % 3 } }],
    limit: [->(all, n) { all.order(:level, :id).limit(n + 2) }, ->(all, n) { all.order(:level, :id).limit(n + 2) },
            ->(rows, n, _) { rows.sort_by { |row| row.values_at(:level, :id) }.first(n + 2) }],
    distinct: [->(all, n) { all.distinct.order(level: :desc, id: :desc).limit(n + 2) },
               ->(all, n) { all.distinct.order(Sequel.desc(:level), Sequel.desc(:id)).limit(n + 2) },
               ->(rows, n, _) { rows.sort_by { |row| [-row[:level], -row[:id]] }.first(n + 2) }],
    selected: [->(all, n) { all.select(:id, :name).where(level: (n..)) }, ->(all, n) { all.select(:id, :name).where { level >= n } },
               ->(rows, n, _) { rows.select { |row| row[:level] >= n } }],
    either: [->(all, n) { all.where(level: n).or(all.where(id: (5..))) }, ->(all, n) { all.where(level: n).or { id >= 5 } },
             ->(rows, n, _) { rows.select { |row| row[:level] == n || row[:id] >= 5 } }]
  }.freeze
  # Scopes that only knights have: through another table.
  OF_KNIGHTS = {
    joined: [->(all, n) { all.joins(:guild).where(guilds: { level: (n..) }) },
             ->(all, n) { all.association_join(:guild).where { Sequel[:guild][:level] >= n } },
             ->(rows, n, all) { rows.select { |row| all[:guilds].any? { |guild| guild[:id] == row[:guild_id] && guild[:level] >= n } } }],
    many: [->(all, _) { all.joins(:quests) }, ->(all, _) { all.association_join(:quests) },
           ->(rows, _, all) { rows.select { |row| all[:quests].any? { |quest| quest[:knight_id] == row[:id] } } }],
    grouped: [->(all, _) { all.joins(:quests).group("knights.id").having("COUNT(*) > 1") },
              ->(all, _) { all.association_join(:quests).group(Sequel[:knights][:id]).having { count.function.* > 1 } },
              ->(rows, _, all) { rows.select { |row| all[:quests].count { |quest| quest[:knight_id] == row[:id] } > 1 } }]
  }.freeze

  def test_random_documents_of_random_graphs_contain_only_visible_records
    GRAPHS.times { |number| graph(Random.new((SEED * 1_000_003) + number), "seed #{SEED}, graph #{number}") }
  end

  private

  def graph(random, place)
    @random = random
    world.fill(random_rows)
    @relationships = ScopesWorld::RELATED.to_h { |table, all| [table, some(all.keys - (world.orm == :sequel ? [:target] : []), 0.7)] }
    @paths = ScopesWorld::PATHS.transform_values { |paths| some(paths, 0.6) }
    @scopes = ScopesWorld::TABLES.keys.to_h { |table| [table, scope_for(table)] }
    @by_models = some(ScopesWorld::TABLES.keys, 0.15)
    @resources = resources
    DOCUMENTS.times { |number| document("#{place}, document #{number}, scopes #{@scopes.compact}, through models #{@by_models}") }
  end

  def pick(list) = list[@random.rand(list.size)]
  def some(list, share) = list.select { @random.rand < share }

  def random_rows
    sizes = { guilds: 4, knights: 9, quests: 10, rides: 10, steeds: 5 }.transform_values { |most| @random.rand(0..most) }
    ScopesWorld::TABLES.to_h do |table, columns|
      [table, Array.new(sizes[table]) { |index| random_row(table, index + 1, columns, sizes) }]
    end
  end

  def random_row(table, id, columns, sizes)
    row = { id: id, name: "#{table} #{id}", level: @random.rand(0..4) }
    columns.each_key do |column|
      target = { guild_id: :guilds, liege_id: :knights, knight_id: :knights, quest_id: :quests, steed_id: :steeds,
                 owner_id: :knights }[column]
      row[column] = @random.rand(1..sizes[target]) if target && sizes[target].positive? && @random.rand < 0.85
    end
    row[:type] = world.paladin.name if columns.key?(:type) && world.orm == :active_record && @random.rand < 0.4
    return row unless columns.key?(:target_id)

    kind = pick(%i[guilds steeds])
    sizes[kind].positive? && @random.rand < 0.8 ? row.merge(target_type: world.name_of(kind), target_id: @random.rand(1..sizes[kind])) : row
  end

  def scope_for(table)
    names = SCOPES.keys + (table == :knights ? OF_KNIGHTS.keys : [])
    pick(names) if @random.rand < 0.75
  end

  def resources
    made = {}
    ScopesWorld::TABLES.each_key do |table|
      model = world.models[table]
      related = @relationships[table].to_h { |name| [name, ScopesWorld::RELATED[table][name]] }
      paths = @paths[table]
      block = (SCOPES.merge(OF_KNIGHTS)[@scopes[table]] || [])[world.orm == :sequel ? 1 : 0]
      by_models = @by_models.include?(table)
      names = ScopesWorld::TABLES.keys.to_h { |one| [one, world.name_of(one)] }
      made[table] = Class.new(Castellan::Resource) do
        model model
        type table.name
        scope { |all, viewer| block.call(all, viewer.to_i) } if block
        attribute :name
        by_models ? attribute(:level) { |record| record.level } : attribute(:level)
        paths.each { |path| attribute path.tr(".", "_").to_sym, from: path }
        include_depth 4
        sort :id, default: "id"
        related.each do |name, (macro, ends, _)|
          resource = ends.one? ? -> { made[ends.first] } : ends.to_h { |one| [names.fetch(one), -> { made[one] }] }
          public_send(macro, name, resource: resource)
        end
      end
    end
    made
  end

  def document(place)
    table = pick(ScopesWorld::TABLES.keys)
    viewer = pick(VIEWERS)
    tree = random_tree(table, @random.rand(0..3))
    fields = @random.rand < 0.3 ? { table.name => some(%w[name level] + @paths[table].map { |path|
      path.tr(".", "_")
    } + @relationships[table].map(&:name), 0.6) } : {}
    query = { "include" => spelled(tree), "fields" => fields.transform_values { |names| names.join(",") } }
    reference = Reference.new(world.rows, relationships: @relationships, paths: @paths, visible: visible(viewer))
    ids = world.rows[table].map { |row| row[:id] }
    message = "#{place}: #{table} for #{viewer.inspect}, #{query}"
    expected = reference.document(table, ids: ids, include: tree, fields: fields)
    ways(table, viewer, query).each do |way, written|
      actual = facts(JSON.parse(written))
      assert_equal expected, actual, "#{way}, #{message}" unless expected == actual
    end
    one(table, viewer, query, reference, tree, fields, message)
  end

  # The same document, however it is asked for.
  def ways(table, viewer, query)
    resource = @resources[table]
    all = world.models[table]
    { rows: resource.render(query: query, viewer: viewer), given: resource.render(all.where(id: (0..)), query: query, viewer: viewer),
      records: resource.render(world.orm == :sequel ? all.all : all.all.to_a, query: query, viewer: viewer),
      preloaded: resource.render(preloaded(table, all), query: query, viewer: viewer),
      streamed: resource.document(query: query, viewer: viewer).stream(size: 2).each.to_a.join,
      verified: verified { resource.render(query: query, viewer: viewer) } }
  end

  def preloaded(table, all)
    names = some(@relationships[table], 0.5)
    return (names.any? ? all.eager(*names) : all).all if world.orm == :sequel

    names -= [:best_knights] # ActiveRecord preloads a LIMIT for all owners together
    names.any? ? all.preload(*names).to_a : all.all.to_a
  end

  def verified(&block)
    result = Castellan.verify(&block)
    assert_empty result.differences.map(&:to_s)
    result.value
  end

  def one(table, viewer, query, reference, tree, fields, message)
    id = @random.rand(1..9)
    expected = reference.document(table, ids: [id], include: tree, fields: fields)
    document = @resources[table].document(id: id, query: query, viewer: viewer)
    assert_equal expected, facts(JSON.parse(document.to_json)), "one, #{message}"
    assert_equal expected["data"].empty? ? 404 : 200, document.status
    record = world.models[table].where(id: id).first or return
    document = @resources[table].document(record, query: query, viewer: viewer)
    assert_equal [expected, expected["data"].empty? ? 404 : 200], [facts(JSON.parse(document.to_json)), document.status],
                 "record, #{message}"
  end

  def visible(viewer)
    @scopes.compact.to_h do |table, name|
      [table, SCOPES.merge(OF_KNIGHTS)[name].last.call(world.rows[table], viewer.to_i, world.rows).map { |row| row[:id] }]
    end
  end

  def random_tree(table, depth)
    return {} if depth.zero? || @relationships[table].empty?

    some(@relationships[table], 0.5).to_h do |name|
      ends = ScopesWorld::RELATED[table][name][1]
      [name, ends.one? ? random_tree(ends.first, depth - 1) : {}]
    end
  end

  def spelled(tree, above = [])
    tree.flat_map { |name, below|
      [[*above, name].join("."), *spelled(below, [*above, name])]
    }.join(",").then { |text| above.empty? ? text : text.split(",") }
  end

  def facts(document)
    data = [document["data"]].flatten.compact
    { "data" => data.to_h { |object| fact(object) }, "included" => (document["included"] || []).to_h { |object| fact(object) } }
  end

  def fact(object)
    links = (object["relationships"] || {}).transform_values do |value|
      value["data"].is_a?(Array) ? value["data"].map { |link| link.values_at("type", "id") }.sort : value["data"]&.values_at("type", "id")
    end
    [object.values_at("type", "id"), [object["attributes"] || {}, links]]
  end
end

class RandomScopeGraphsOnActiveRecordTest < Minitest::Test
  include RandomScopeGraphs

  def world = ScopesWorld.active_record(:sqlite)
end

class RandomScopeGraphsOnActiveRecordAndPostgresTest < Minitest::Test
  include RandomScopeGraphs

  def setup
    needs :postgres
    super
  end

  def world = ScopesWorld.active_record(:postgres)
end

class RandomScopeGraphsOnSequelTest < Minitest::Test
  include RandomScopeGraphs

  def world = ScopesWorld.sequel(:sqlite)
end

class RandomScopeGraphsOnSequelAndPostgresTest < Minitest::Test
  include RandomScopeGraphs

  def setup
    needs :postgres
    super
  end

  def world = ScopesWorld.sequel(:postgres)
end
