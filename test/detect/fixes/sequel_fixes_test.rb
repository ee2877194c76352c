# frozen_string_literal: true

require "support/own_databases"
require_relative "applied_fix"
require_relative "sequel_zoo"

# Applies every kind of fix for Sequel to a copy of the code and counts its queries.
class SequelFixesTest < Minitest::Test
  include Castellan::AppliedFix
  include Castellan::OwnDatabases

  World = SequelZoo
  module Units
    World = SequelZoo
  end

  KEEPERS = "World::Keeper.order(:id).all.map do |keeper|"
  KEYS = "room_keys_dataset"
  LOOP = "before the loop around .*?: "

  def own_databases = [World::DB]

  def test_every_kind_of_association_is_loaded_eagerly
    { "keeper.badge.id" => 2, "keeper.boss&.name" => 2, "keeper.staff.map(&:name)" => 2, "keeper.animals.map(&:id)" => 2 }
      .each { |code, queries| assert_includes assert_mends(unit(KEEPERS, code, "end"), queries: queries), "add .eager(:" }
    assert_mends(unit("World::Animal.order(:id).all.map do |animal|", "animal.tricks.map(&:name)", "end"), queries: 2)
    assert_mends(unit("World::Lion.order(:id).all.map do |lion|", "lion.mane.colour", "end"), queries: 2)
  end

  def test_records_that_come_one_by_one_are_loaded_together
    assert_includes assert_mends(unit("World::Keeper.order(:id).map do |keeper|", "keeper.badge.id", "end"), queries: 2), "and .all where"
    assert_mends(unit("all = []", "World::Keeper.order(:id).each do |keeper|", "all << keeper.badge.id", "end", "all"), queries: 2)
  end

  def test_nested_associations_are_one_call_at_the_root
    work = unit(KEEPERS, "[keeper.badge.id,", "keeper.animals.map do |animal|", "[animal.meals.map { |meal| meal.feeder.name },",
                "animal.tricks.map(&:id)]", "end]", "end")
    fix = assert_mends(work, queries: 6, findings: findings_of(work))
    assert_includes fix, "add .eager(:badge, animals: [:tricks, { meals: :feeder }]) where the keepers are loaded"
  end

  def test_the_call_is_appended_to_existing_eager_loading
    work = unit("World::Keeper.eager(:animals).order(:id).all.map do |keeper|",
                "keeper.animals.map { |animal| animal.meals.map(&:id) }", "end")
    fix = assert_mends(work, queries: 3, at: "World::Keeper.eager(:animals)")
    assert_includes fix, "(behind the .eager that is there, or in its place)"
  end

  def test_an_eager_graph_and_own_sql_can_be_added_to
    graph = "World::Keeper.eager_graph(:badge).order(Sequel[:szoo_keepers][:id]).all.map do |keeper|"
    assert_mends(unit(graph, "keeper.room_keys.map(&:id)", "end"), queries: 2)
    assert_mends(unit("World::Keeper.with_sql('SELECT * FROM szoo_keepers').all.map do |keeper|", "keeper.badge.id", "end"), queries: 2)
  end

  def test_records_loaded_through_an_association_are_eager_loaded_with_a_block
    work = unit("World::Keeper.first.animals.map do |animal|", "animal.meals.map(&:id)", "end")
    assert_includes assert_mends(work, queries: 3), "write .animals { |dataset| dataset.eager(:meals) } instead of .animals where"
    staff = unit("World::Keeper.where(boss_id: nil).all.map do |keeper|", "keeper.staff.map { |one| one.badge.id }", "end")
    assert_mends(staff, queries: 3)
  end

  def test_an_association_of_a_subclass_cannot_be_loaded_with_the_others
    work = unit("World::Animal.order(:id).all.map do |animal|", "animal.mane.colour if animal.is_a?(World::Lion)", "end")
    finding = only_finding(work)
    assert_includes finding.fix_refused, "only the lions among the animals have mane: load them apart"
    refused = run_copy(work) { |copy| copy.lines[0] = copy.lines[0].sub("Animal", "Animal.eager(:mane)") }
    assert_includes refused.error, "UndefinedAssociation"
  end

  def test_records_of_several_loads_are_loaded_eagerly_at_each
    work = unit("one = World::Keeper.where(id: [1, 2, 3]).all", "other = World::Keeper.where(id: [4, 5, 6]).all",
                "(one + other).map do |keeper|", "keeper.badge.id", "end")
    assert_match(/are loaded: \S+:2 and \S+:3\z/, assert_mends(work, queries: 4))
  end

  def test_one_filtered_record_becomes_a_new_association
    { "#{KEYS}.where(lost: false).order(:id).last" => "order: Sequel.desc(:id)) { |dataset| dataset.where(lost: false) }",
      "#{KEYS}.where(lost: false).order(:id).first" => "one_to_one(:first_room_key,", "#{KEYS}.first(lost: true)" => "where(lost: true) }",
      "#{KEYS}.working.order(:door).last" => "dataset.working.order(Sequel.desc(:door)) }" }.each do |code, declared|
      assert_includes assert_mends(unit(KEEPERS, "keeper.#{code}.door", "end"), queries: 2, reads: code), declared
    end
    assert_mends(unit(KEEPERS, "keeper.#{KEYS}.first.door", "end"), queries: 2, reads: "#{KEYS}.first", tried: false)
  end

  def test_a_declared_association_that_selects_the_same_record_is_loaded_eagerly
    code = "animal.meals_dataset.where(feeder_id: 2).order(:id).last&.id"
    finding = only_finding(unit("World::Animal.order(:id).all.map do |animal|", code, "end"))
    assert_match(/\Aadd \.eager\(:newest_meal\) where the animals are loaded: \S+; and read \.newest_meal at \S+\z/, finding.fix)
    finding = only_finding(unit("World::Animal.order(:id).all.map do |animal|", code.sub("2", "3"), "end"))
    assert_includes finding.fix, "declare in SequelZoo::Animal: one_to_one(:last_meal", "lazy_meal is declared with allow_eager: false"
  end

  def test_a_filtered_record_of_a_nested_association
    work = unit("World::Keeper.eager(:animals).order(:id).all.map do |keeper|",
                "keeper.animals.map { |animal| animal.meals_dataset.order(:id).last.id }", "end")
    assert_mends(work, queries: 3, at: "World::Keeper.eager(:animals)", reads: "meals_dataset.order(:id).last")
  end

  def test_a_block_with_a_value_of_the_owner_becomes_no_association
    finding = only_finding(unit(KEEPERS, "least = keeper.id", "keeper.#{KEYS}.where { door > least }.all.map(&:door)", "end"))
    assert_nil finding.fix
    assert_includes finding.fix_refused, "does not contain all conditions of the query"
  end

  def test_a_grouped_calculation_replaces_one_per_record
    { "count" => LOOP, "sum(:door)" => LOOP, "avg(:door)" => LOOP,
      "where(lost: false).count" => LOOP, "working.sum(:door)" => LOOP }.each do |code, before|
        finding = only_finding(unit(KEEPERS, "keeper.#{KEYS}.#{code}", "end"))
        grouped = finding.fix[/#{before}(.*?)(?: \(what is missing there has none\))?\z/, 1]
        found, queries = evaluate(grouped, values: World::Keeper.select_map(:id))
        expected = World::Keeper.select_map(:id).to_h { |id| [id, evaluate("World::Keeper[id].#{KEYS}.#{code}", id: id).first] }
        assert_equal [1, expected], [queries, found], finding.fix
      end
  end

  def test_look_ups_become_one_query
    {
      "World::Trick[value]" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::Trick.first(name: value)" => [["trick 0", "trick 1", "none"], ->(found, value) { found[value]&.first }],
      "World::RoomKey.where(keeper_id: value).order(:id).all" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::RoomKey.where(lost: false, keeper_id: value).order(:id).all" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::RoomKey.where(keeper_id: value).count" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value, lost: true).sum(:door)" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value).empty?" => [[1, 2, 99], ->(found, value) { !found.include?(value) }]
    }.each do |code, (values, read)|
      finding = only_finding(unit("#{values.inspect}.map do |value|", code, "end"))
      found, queries = evaluate(finding.fix.to_s[/query once: (.*)\z/, 1], values: values)
      expected = values.map { |value| evaluate(code, value: value).first }
      assert_equal [1, expected], [queries, values.map { |value| read.call(found, value) }], finding.fix
    end
  end

  def test_lines_that_query_the_model_read_the_association_instead
    { "World::Badge.first(keeper_id: keeper.id).id" => "badge",
      "World::RoomKey.where(keeper_id: keeper.id).all" => "room_keys" }.each do |code, read|
      finding = only_finding(work = unit(KEEPERS, code, "end"))
      assert_match(/; and read \.#{Regexp.escape(read)} at \S+:3\z/, finding.fix)
      assert_includes Castellan::Doctor.try(finding) { work.call }.to_s, "the line that queries must be rewritten"
    end
  end

  def test_a_query_that_differs_from_the_association_has_no_eager_load
    ["group_and_count(:lost).all", "distinct.count"].each do |code|
      assert_refused(unit(KEEPERS, "keeper.#{KEYS}.#{code}", "end"), ".eager(:room_keys)")
    end
  end

  def test_a_finding_without_a_possible_preload_names_the_reason
    refused = { "where(door: keeper.id).all" => "differ from record to record", "limit(1, 1).all" => "a limit for each record" }
    refused.each do |code, reason|
      assert_includes assert_refused(unit(KEEPERS, "keeper.#{KEYS}.#{code}", "end"), ".eager(:room_keys)"), reason
    end
  end

  # `eager(animals: :meals)` would read the animals again, without the condition of the JOIN.
  def test_associations_of_joined_records_are_joined_as_well
    graph = "World::Keeper.eager_graph(:animals).where(kind: 'SequelZoo::Lion').order(Sequel[:szoo_keepers][:id]).all.map do |keeper|"
    work = unit(graph, "keeper.animals.map { |animal| animal.meals.map(&:id).sort }", "end")
    finding = only_finding(work)
    before = measured(work)
    assert_match(/\Anest it in the \.eager_graph that loads the keepers, as \.eager_graph\(animals: :meals\): \S+:2\z/, finding.fix)
    applied = run_copy(work) { |copy| copy.lines[0] = copy.lines[0].sub(":animals", "animals: :meals") }
    assert_equal [before.result, 1, []], [applied.result, applied.queries, applied.findings]
    # The trial finds the animals that the JOIN loaded and queries the meals only.
    assert_predicate Castellan::Doctor.try(finding) { work.call }, :accepted?
  end

  def test_single_row_writes_become_one_statement
    { "World::Trick.create(name: value.to_s)" => [{ rows: [{ name: "a" }, { name: "b" }] },
                                                  "multi_insert\\(rows\\)"] }.each do |code, (names, method)|
      fix = rolled_back { findings_of(unit("[1, 2].each do |value|", code, "end")).find { |one| one.kind == :write_loop }.fix }
      _, queries = rolled_back { evaluate(fix[/SequelZoo::Trick\.[^;]*?#{method}(?= \()/], **names) }
      assert_equal 1, queries, fix
    end
  end

  private

  # SQLite's connections do not survive a fork.
  def before_copy = World::DB.disconnect

  def rolled_back(&block) = World::DB.transaction(rollback: :always, &block)
end
