# frozen_string_literal: true

require "support/own_databases"
require_relative "applied_fix"
require_relative "active_record_zoo"

# Applies every kind of fix for ActiveRecord to a copy of the code and counts its queries.
class ActiveRecordFixesTest < Minitest::Test
  include Castellan::AppliedFix
  include Castellan::OwnDatabases

  World = ActiveRecordZoo
  module Units
    World = ActiveRecordZoo
  end

  KEEPERS = "World::Keeper.order(:id).map do |keeper|"
  LOOP = "before the loop around .*?: "

  KEY = "room_keys.where(lost: false)"

  def own_databases = [World::Base]

  def test_every_kind_of_association_is_preloaded
    { "keeper.badge.id" => 2, "keeper.boss&.name" => 2, "keeper.staff.map(&:name)" => 2, "keeper.meals.map(&:id)" => 3,
      "keeper.first_animal.name" => 2, "keeper.first_meal&.id" => 3, "keeper.notes.map(&:text)" => 2,
      "keeper.room_keys.size" => 2, "keeper.room_keys.any?" => 2, "keeper.room_keys.pluck(:door)" => 2, "keeper.room_key_ids" => 2,
      "keeper.room_keys.take.id" => 2 }.each do |code, queries|
      assert_includes assert_mends(unit(KEEPERS, code, "end"), queries: queries), "add .preload(:"
    end
    assert_mends(unit("World::Animal.order(:id).map do |animal|", "animal.tricks.map(&:name)", "end"), queries: 3)
  end

  def test_a_search_for_one_record_in_an_association_is_answered_by_a_preload
    { "room_keys" => 2, "meals" => 3 }.each do |association, queries|
      code = "keeper.#{association}.include?(World::#{association.classify}.instantiate('id' => 1))"
      assert_includes assert_mends(unit(KEEPERS, code, "end"), queries: queries), "add .preload(:#{association}) where"
    end
    assert_nil only_finding(unit(KEEPERS, "keeper.#{KEY}.include?(World::RoomKey.instantiate('id' => 1))", "end")).fix
  end

  def test_what_a_line_preloads_for_each_record_is_preloaded_for_all
    finding = only_finding(unit(KEEPERS, "keeper.animals.includes(:tricks).map { |animal| animal.tricks.size }", "end"))
    assert_includes finding.fix, "add .preload(animals: :tricks) where the keepers are loaded"
    finding = only_finding(unit(KEEPERS, "keeper.#{KEY}.includes(keeper: :badge).map { |key| key.keeper.badge.id }", "end"))
    assert_includes finding.fix, "where(keeper_id: values).where(lost: false).includes(keeper: :badge).group_by(&:keeper_id)"
  end

  def test_an_association_with_a_composite_key_is_preloaded
    pens = "World::Pen.order(:wing, :number).map do |pen|"
    assert_mends(unit(pens, "pen.troughs.map(&:full)", "end"), queries: 2)
    assert_nil only_finding(unit(pens, "pen.troughs.where(full: true).last.id", "end")).fix
  end

  # As closure_tree declares `self_and_ancestors`.
  def test_a_through_association_that_is_ordered_by_its_path_is_not_preloaded
    ordered = [["zoo_animals.name", nil], ["zoo_meals.id", "add .preload(:ordered_meals)"],
               ["zoo_meals.id * 1.5", "add .preload(:ordered_meals)"]]
    ordered.each do |column, fix|
      World::Keeper.has_many :ordered_meals, -> { order(Arel.sql(column)) }, through: :animals, source: :meals
      finding = only_finding(unit(KEEPERS, "keeper.ordered_meals.map(&:id)", "end"))
      if fix
        assert_includes finding.fix, fix
      else
        assert_raises(ActiveRecord::StatementInvalid) { World::Keeper.preload(:ordered_meals).to_a }
        narrowed = only_finding(unit(KEEPERS, "keeper.ordered_meals.where.not(id: 0).map(&:id)", "end"))
        assert_includes finding.fix_refused, "its order names a table that a preload does not join"
        assert_match(/cannot be preloaded: its order .*; join and group by hand/, narrowed.fix_refused)
      end
    end
  ensure
    World::Keeper._reflections.delete(:ordered_meals)
    World::Keeper._reflections.delete("ordered_meals")
    World::Keeper.clear_reflections_cache
  end

  def test_nested_associations_are_one_call_at_the_root
    work = unit(KEEPERS, "[keeper.badge.id,", "keeper.animals.map do |animal|", "[animal.meals.map { |meal| meal.feeder.name },",
                "animal.tricks.map(&:id)]", "end]", "end")
    fix = assert_mends(work, queries: 7, findings: findings_of(work))
    assert_includes fix, "add .preload(:badge, animals: [:tricks, { meals: :feeder }]) where the keepers are loaded"
  end

  def test_records_loaded_through_an_association_are_preloaded_there
    assert_mends(unit("World::Keeper.find(1).animals.map do |animal|", "animal.meals.map(&:id)", "end"), queries: 3, at: "animals")
    work = unit("World::Keeper.where(boss_id: nil).map do |keeper|", "keeper.staff.map { |one| one.badge.id }", "end")
    assert_mends(work, queries: 3, at: "keeper.staff")
  end

  def test_a_preload_through_one_association_is_not_taken_for_one_through_another_to_the_same_table
    work = unit("World::Keeper.preload(:first_meal, :first_animal, animals: :notes).order(:id).map do |keeper|",
                "animal = keeper.first_animal", "animal.notes.map(&:text)", "end")
    assert_includes only_finding(work).fix, "add .preload(first_animal: :notes) where the keepers are loaded"
  end

  def test_polymorphic_associations_are_followed_in_both_directions
    assert_mends(unit("World::Note.order(:id).map do |note|", "note.subject.name", "end"), queries: 3)
    work = unit("World::Note.order(:id).map do |note|", "note.subject.notes.size", "end")
    assert_includes assert_mends(work, queries: 5, findings: findings_of(work)), "add .preload(subject: :notes)"
    again = unit("World::Note.preload(:subject).order(:id).map do |note|", "note.subject.notes.size", "end")
    again_findings = findings_of(again)
    assert_includes assert_mends(again, queries: 5, findings: again_findings), "add .preload(subject: :notes) where the notes are loaded"
  end

  def test_an_association_of_a_subclass_cannot_be_preloaded_with_the_others
    assert_mends(unit("World::Lion.order(:id).map do |lion|", "lion.mane.colour", "end"), queries: 2)
    work = unit("World::Animal.order(:id).to_a.map do |animal|", "animal.mane.colour if animal.is_a?(World::Lion)", "end")
    assert_includes only_finding(work).fix_refused, "only the lions among the animals have mane: load them apart"
  end

  def test_records_of_several_loads_are_preloaded_at_each
    work = unit("one = World::Keeper.where(id: [1, 2, 3]).to_a", "other = World::Keeper.where(id: [4, 5, 6]).to_a",
                "(one + other).map do |keeper|", "keeper.badge.id", "end")
    assert_match(/are loaded: \S+:2 and \S+:3\z/, assert_mends(work, queries: 4))
  end

  def test_eager_loading_by_join_and_batches_can_be_added_to
    joined = "World::Keeper.includes(:badge).references(:badge).order(:id).map do |keeper|"
    assert_mends(unit(joined, "keeper.room_keys.map(&:id)", "end"), queries: 2)
    batches = unit("World::Keeper.find_each(batch_size: 3).map do |keeper|", "keeper.badge.id", "end")
    assert_mends(batches, queries: 5)
    work = unit("World::Keeper.find_by_sql('SELECT * FROM zoo_keepers').map do |keeper|", "keeper.badge.id", "end")
    assert_includes only_finding(work).fix_refused, "by a method that preloads nothing"
  end

  def test_sql_of_another_model_on_the_line_is_not_mistaken_for_the_load
    sql = "['SELECT * FROM zoo_room_keys WHERE keeper_id = ?', keeper.id]"
    work = unit("World::Keeper.order(:id).map { |keeper| World::RoomKey.find_by_sql(#{sql}).size }")
    assert_match(/\Aadd \.preload\(:room_keys\) where the keepers are loaded/, only_finding(work).fix)
  end

  def test_one_filtered_record_becomes_a_new_association
    { "#{KEY}.last" => "has_one :last_room_key, -> { where(lost: false).order(id: :desc) }", "room_keys.last" => "-> { order(id: :desc) }",
      "room_keys.order(door: :desc).last" => "has_one :first_room_key, -> { order(door: :asc) }",
      "#{KEY}.first" => "-> { where(lost: false).order(id: :asc) }", "room_keys.find_by(lost: false)" => "has_one :chosen_room_key",
      "room_keys.working.last" => "-> { working.order(id: :desc) }", "room_keys.where(door: 0..1).last" => "where(door: 0..1)" }
      .each do |code, declared|
        fix = assert_mends(unit(KEEPERS, "keeper.#{code}.door", "end"), queries: 2, reads: code)
        assert_includes fix, declared
        assert_includes fix, "declare in ActiveRecordZoo::Keeper: has_one"
      end
  end

  def test_a_declared_association_that_selects_the_same_record_is_preloaded
    work = unit("World::Animal.order(:id).map do |animal|", "animal.meals.where(feeder_id: 2).last&.id", "end")
    finding = only_finding(work)
    assert_match(/\Aadd \.preload\(:newest_meal\) where the animals are loaded: \S+; and read \.newest_meal at \S+\z/, finding.fix)
    assert_predicate Castellan::Doctor.try(finding) { units_of(finding).last.public_send(units_of(finding).first) }, :accepted?
    other = unit("World::Animal.order(:id).map do |animal|", "animal.meals.where(feeder_id: 1).last&.id", "end")
    assert_includes only_finding(other).fix, "declare in ActiveRecordZoo::Animal: has_one :last_meal"
  end

  # A preload applies a limit to the records of all owners together, and a reader of the application may return another record.
  def test_a_declared_association_whose_preload_differs_is_not_preloaded
    [3, 4].each do |feeder|
      work = unit("World::Animal.order(:id).map do |animal|", "animal.meals.where(feeder_id: #{feeder}).last&.id", "end")
      assert_includes only_finding(work).fix, "declare in ActiveRecordZoo::Animal: has_one :last_meal"
    end
  end

  def test_a_chain_over_several_lines_is_read_as_one
    declared = "-> { where(lost: false).order(id: :desc) }"
    { ["keeper.room_keys", ".where(lost: false) # not", "# the lost ones", ".last", "&.door"] => declared,
      ["keeper.room_keys.", "where(lost: false).", "last.door"] => declared,
      ["keeper.room_keys", ".where(lost: false,", "door: 0)", ".last.door"] => "-> { where(lost: false, door: 0).order(id: :desc) }",
      ["(keeper.room_keys.where(", "lost: false", ").last).door"] => declared }.each do |lines, code|
      finding = only_finding(unit(KEEPERS, *lines, "end"))
      assert_includes finding.fix, "has_one :last_room_key, #{code}"
      assert_predicate Castellan::Doctor.try(finding) { units_of(finding).last.public_send(units_of(finding).first) }, :accepted?
    end
  end

  def test_filtered_records_are_looked_up_at_once
    [KEY, "#{KEY}.order(door: :desc)", "room_keys.working.pluck(:door)"]
      .each do |code|
        finding = only_finding(unit(KEEPERS, "keeper.#{code}#{".map(&:door)" unless code.include?("pluck")}", "end"))
        found, queries = evaluate(finding.fix.to_s[/query once: (.*)\z/, 1], values: World::Keeper.ids)
        expected = World::Keeper.order(:id).map { |keeper| keeper.instance_eval(code).map { |one| one.is_a?(Integer) ? one : one.door } }
        assert_equal [1, expected], [queries, World::Keeper.order(:id).map { |keeper| found[keeper.id].map(&:door) }], finding.fix
      end
  end

  def test_records_chosen_through_another_association_have_no_automatic_fix
    ["animals.each { |one| one.tricks.where(name: 'trick 1').to_a }", "meals.order(:id).last.id"].each do |code|
      findings = findings_of(unit("World::Keeper.preload(:animals).order(:id).map do |keeper|", "keeper.#{code}", "end"))
      assert_equal [nil], findings.map(&:fix).uniq, code
    end
  end

  def test_a_filtered_record_of_a_nested_association_or_subclass
    work = unit("World::Keeper.preload(:animals).order(:id).map do |keeper|",
                "keeper.animals.map { |animal| animal.meals.order(:id).last.id }", "end")
    assert_includes assert_mends(work, queries: 3, reads: "meals.order(:id).last"), "add .preload(animals: :last_meal)"
    heir = unit("World::Lion.order(:id).map do |lion|", "lion.meals.where(feeder_id: 1).last&.id", "end")
    fix = assert_mends(heir, queries: 2, reads: "meals.where(feeder_id: 1).last")
    assert_includes fix, "declare in ActiveRecordZoo::Animal: has_one :last_meal"
    notes = unit(KEEPERS, "keeper.notes.order(:id).last.text", "end")
    assert_includes assert_mends(notes, queries: 2, reads: "notes.order(:id).last"), "as: :subject"
  end

  # The reader rewrites the whole line; the fix names the association to read.
  def test_a_line_that_queries_the_model_reads_the_association_instead
    { "World::Badge.find_by(keeper_id: keeper.id).id" => "badge",
      "World::RoomKey.where(keeper_id: keeper.id).map(&:id)" => "room_keys" }.each do |code, read|
      finding = only_finding(work = unit(KEEPERS, code, "end"))
      assert_match(/; and read \.#{Regexp.escape(read)} at \S+:3\z/, finding.fix)
      rest = code[/\)(?:\.last)?(\.(?:id|map.*))\z/, 1]
      assert_mends_rewritten(work, finding.fix, "keeper.#{read}#{rest}")
      assert_includes Castellan::Doctor.try(finding) { work.call }.to_s, "the line that queries must be rewritten"
    end
  end

  def test_an_association_in_a_variable_is_looked_up
    finding = only_finding(unit(KEEPERS, "keys = keeper.room_keys", "keys.where(lost: false).last.door", "end"))
    assert_includes finding.fix, "RoomKey.where(keeper_id: values).where(lost: false).order(id: :desc).group_by(&:keeper_id)"
    limited = unit(KEEPERS, "keys = keeper.room_keys", "keys.first(2).map(&:door)", "end")
    assert_includes only_finding(limited).fix_refused, "a limit for each"
  end

  def test_a_query_that_differs_from_the_association_has_no_preload
    ["joins(:keeper).map(&:door)", "distinct.count(:door)", "group(:lost).count"].each do |code|
      assert_refused(unit(KEEPERS, "keeper.room_keys.#{code}", "end"), ".preload(:room_keys)")
    end
  end

  def test_records_that_are_read_in_batches_have_no_automatic_fix
    work = unit(KEEPERS, "all = []", "keeper.room_keys.find_each { |key| all << key.door }", "all", "end")
    assert_includes only_finding(work).fix_refused, "a limit for each record"
  end

  def test_each_of_several_calls_on_one_line_has_its_fix
    findings = findings_of(unit(KEEPERS, "[keeper.#{KEY}.count, keeper.room_keys.count]", "end"))
    grouped = findings.map { |finding| finding.fix[/\w+::RoomKey\..*?count/] }
    assert_equal [".where(lost: false).group(:keeper_id).count", ".group(:keeper_id).count"], grouped.map { |code| code[/\)(\..*)/, 1] }
  end

  def test_a_preload_answers_no_calculation_beside_a_size
    { "[keeper.room_keys.size, keeper.room_keys.sum(:door)]" => [".preload(:room_keys)", ".group(:keeper_id).sum(:door)"],
      "[keeper.room_keys.any?, keeper.room_keys.count]" => [".preload(:room_keys)", ".group(:keeper_id).count"] }.each do |code, fixes|
      found = findings_of(unit(KEEPERS, code, "end")).map { |finding| finding.fix[/\.(?:preload|group)\(.*?\)(?:\.sum\(:door\)|\.count)?/] }
      assert_equal fixes, found
    end
    loaded = unit("World::Keeper.order(:id).preload(:room_keys).map do |keeper|", "[keeper.room_keys.size, keeper.room_keys.count]", "end")
    assert_match(/\.group\(:keeper_id\)\.count\z/, only_finding(loaded).fix)
  end

  def test_a_grouped_calculation_replaces_one_per_record
    { "room_keys.count" => LOOP, "room_keys.sum(:door)" => LOOP, "room_keys.average(:door)" => LOOP, "#{KEY}.count" => LOOP,
      "room_keys.working.sum(:door)" => LOOP, "room_keys.where(door: 0).maximum(:id)" => LOOP }
      .each do |code, before|
        finding = only_finding(unit(KEEPERS, "keeper.#{code}", "end"))
        grouped = finding.fix[/#{before}(.*?)(?: \(what is missing there has none\))?\z/, 1]
        found, queries = evaluate(grouped, values: World::Keeper.ids)
        expected = World::Keeper.order(:id).to_h { |keeper| [keeper.id, keeper.instance_eval(code)] }
        assert_equal [1, expected], [queries, found], finding.fix
      end
  end

  def test_look_ups_become_one_query
    {
      "World::Trick.find(value)" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::Trick.find_by(name: value)" => [["trick 0", "trick 1", "none"], ->(found, value) { found[value]&.first }],
      "World::RoomKey.where(keeper_id: value).order(:id).to_a" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::RoomKey.where(lost: false, keeper_id: value).order(:id).to_a" => [[1, 2, 3], ->(found, value) { found[value] }],
      "World::RoomKey.where(keeper_id: value).order(door: :asc).last" => [[1, 2], ->(found, value) { found[value].first }],
      "World::RoomKey.where(keeper_id: value).count" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value, lost: true).sum(:door)" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value).exists?" => [[1, 2, 99], ->(found, value) { found.include?(value) }]
    }.each { |code, (values, read)| assert_looked_up(code, values, &read) }
  end

  def test_records_of_several_classes_are_reloaded_by_their_common_superclass
    work = unit("World::Animal.order(:id).map do |animal|", "animal.reload.id", "end")
    assert_includes only_finding(work).fix, "query once: ActiveRecordZoo::Animal.where(id: values).index_by(&:id)"
  end

  def test_pages_of_each_value_have_no_fix
    work = unit("[1, 2].map do |value|", "World::RoomKey.where(keeper_id: value).order(:id).limit(2).offset(1).to_a", "end")
    assert_includes only_finding(work).fix_refused, "a page for each value"
  end

  def test_a_look_up_that_is_not_on_the_line_has_no_guessed_fix
    work = unit("[[1, false], [2, true]].map do |keeper, lost|", "World::RoomKey.where(keeper_id: keeper, lost: lost).to_a", "end")
    assert_match(/conditions on keeper_id, lost, and \S+:3 does not show which changes\z/, only_finding(work).fix_refused)
    work = unit("[1, 2].map do |id|", "World::RoomKey.where(keeper_id: id).where('door > 0').to_a", "end")
    assert_includes only_finding(work).fix_refused, "does not contain all conditions of the query"
    work = unit("[1, 2].map do |id|", "World::RoomKey.joins(:keeper).where(zoo_keepers: { boss_id: id }).to_a", "end")
    assert_nil only_finding(work).fix
  end

  def test_a_finding_without_a_possible_preload_names_the_reason
    { "room_keys.limit(2).to_a" => "a limit for each record", "room_keys.where(door: keeper.id).to_a" => "differ from record to record",
      "room_keys.find(keeper.id * 3)" => "does not contain all conditions of the query",
      "meals.where(feeder_id: 1).count" => "preload ActiveRecordZoo::Keeper#meals and compute it in Ruby (size" }.each do |code, reason|
      preload = code.start_with?("meals") ? ".preload(:meals)" : ".preload(:room_keys)"
      assert_includes assert_refused(unit(KEEPERS, "keeper.#{code}", "end"), preload), reason
    end
    assert_includes only_finding(unit(KEEPERS, "keeper.room_keys.first(2)", "end")).fix_refused, "a limit for each record"
    ["keeper.room_keys.first(most)", "keeper.room_keys.limit(most).to_a",
     "World::RoomKey.where(keeper_id: keeper.id).limit(most).to_a"].each do |code|
      work = unit("most = 2", KEEPERS, code, "end")
      assert_includes only_finding(work).fix_refused, "a limit for each record", code
    end
  end

  def test_single_row_writes_become_one_statement
    { "World::Trick.create!(name: value.to_s)" => [[{ name: "a" }, { name: "b" }], "insert_all!"] }.each do |code, (rows, method)|
      fix = rolled_back { findings_of(unit("[1, 2].each do |value|", code, "end")).find { |one| one.kind == :write_loop }.fix }
      assert_written_once(fix[/ActiveRecordZoo::Trick\.(?!where\(…\))[^;]*?#{method}(?:\(rows\))?/], rows)
    end
  end

  private

  def assert_mends_rewritten(work, fix, line)
    before = measured(work)
    applied = run_copy(work) do |copy|
      Written.new(fix.sub(/; and read.*/, ""), copy, /World::Keeper/, nil).call
      copy.lines[1] = line
    end
    assert_equal [nil, before.result, 2, []], [applied.error, applied.result, applied.queries, applied.findings], fix
  end

  # Returns the file of the finding's method, and its module.
  def units_of(finding) = [File.basename(finding.location).sub(/\.rb:\d+\z/, ""), Units]

  def assert_looked_up(code, values, &read)
    finding = only_finding(unit("#{values.inspect}.map do |value|", code, "end"))
    found, queries = evaluate(finding.fix.to_s[/query once: (.*)\z/, 1], values: values)
    expected = values.map { |value| evaluate(code, value: value).first }
    assert_equal [1, expected], [queries, values.map { |value| read.call(found, value) }], finding.fix
  end

  def assert_written_once(code, rows)
    _, queries = rolled_back { evaluate(code, rows: rows, ids: rows) }
    assert_equal 1, queries, code
  end

  def rolled_back
    result = nil
    World::Base.transaction do
      result = yield
      raise ActiveRecord::Rollback
    end
    result
  end
end
