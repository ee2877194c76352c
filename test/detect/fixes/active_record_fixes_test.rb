# frozen_string_literal: true

require "support/own_databases"
require_relative "applied_fix"
require_relative "active_record_zoo"

# Every kind of suggestion for ActiveRecord is applied to a copy of the work, and counted again.
class ActiveRecordFixesTest < Minitest::Test
  include Castellan::AppliedFix
  include Castellan::OwnDatabases

  World = ActiveRecordZoo
  module Units
    World = ActiveRecordZoo
  end

  KEEPERS = "World::Keeper.order(:id).map do |keeper|"
  LOOP = "before the loop at .*?: "

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

  def test_composite_keys_are_declared_with_all_their_columns
    pens = "World::Pen.order(:wing, :number).map do |pen|"
    assert_mends(unit(pens, "pen.troughs.map(&:full)", "end"), queries: 2)
    work = unit(pens, "pen.troughs.where(full: true).last.id", "end")
    assert_includes assert_mends(work, queries: 2, reads: "troughs.where(full: true).last"), ": [:pen_wing, :pen_number]"
  end

  def test_nested_associations_are_one_call_at_the_root
    work = unit(KEEPERS, "[keeper.badge.id,", "keeper.animals.map do |animal|", "[animal.meals.map { |meal| meal.feeder.name },",
                "animal.tricks.map(&:id)]", "end]", "end")
    fix = assert_mends(work, queries: 7, findings: findings_of(work))
    assert_includes fix, "add .preload(:badge, animals: [:tricks, { meals: :feeder }]) where the keepers are loaded"
  end

  def test_what_is_loaded_through_an_association_is_preloaded_there
    assert_mends(unit("World::Keeper.find(1).animals.map do |animal|", "animal.meals.map(&:id)", "end"), queries: 3, at: "animals")
    work = unit("World::Keeper.where(boss_id: nil).map do |keeper|", "keeper.staff.map { |one| one.badge.id }", "end")
    assert_mends(work, queries: 3, at: "keeper.staff")
  end

  def test_polymorphic_associations_are_followed_in_both_directions
    assert_mends(unit("World::Note.order(:id).map do |note|", "note.subject.name", "end"), queries: 3)
    work = unit("World::Note.order(:id).map do |note|", "note.subject.notes.size", "end")
    assert_includes assert_mends(work, queries: 5, findings: findings_of(work)), "add .preload(subject: :notes)"
    again = unit("World::Note.preload(:subject).order(:id).map do |note|", "note.subject.notes.size", "end")
    again_findings = findings_of(again)
    assert_includes assert_mends(again, queries: 5, findings: again_findings), "add .preload(subject: :notes) where the notes are loaded"
  end

  def test_an_association_of_a_subclass_is_preloaded_for_the_subclass_alone
    assert_mends(unit("World::Lion.order(:id).map do |lion|", "lion.mane.colour", "end"), queries: 2)
    work = unit("animals = World::Animal.order(:id).to_a", "animals.map do |animal|", "animal.mane.colour if animal.is_a?(World::Lion)",
                "end")
    finding = only_finding(work)
    code = finding.fix[/alone where the animals are loaded: \S+: (.*)\z/, 1]
    applied = run_copy(work) { |copy| copy.edit(finding.parent_location) { |line| "#{line}\n#{code}" } }
    assert_equal [nil, 2, []], [applied.error, applied.queries, applied.findings]
    assert_tried(work, [finding], measured(work), applied)
  end

  def test_an_association_of_a_subclass_further_down
    work = unit("keepers = World::Keeper.preload(:animals).order(:id).to_a", "keepers.flat_map do |keeper|",
                "keeper.animals.map { |animal| animal.mane.colour if animal.is_a?(World::Lion) }", "end")
    finding = only_finding(work)
    code = finding.fix[/alone where the keepers are loaded: \S+: (.*)\z/, 1]
    assert_includes code, "records: keepers.flat_map(&:animals).grep(ActiveRecordZoo::Lion)"
    applied = run_copy(work) { |copy| copy.edit(finding.parent_location) { |line| "#{line}\n#{code}" } }
    assert_equal [nil, 3, []], [applied.error, applied.queries, applied.findings]
    assert_tried(work, [finding], measured(work), applied)
  end

  def test_records_of_several_loads_are_preloaded_at_each
    work = unit("one = World::Keeper.where(id: [1, 2, 3]).to_a", "other = World::Keeper.where(id: [4, 5, 6]).to_a",
                "(one + other).map do |keeper|", "keeper.badge.id", "end")
    assert_match(/are loaded: \S+:2 and \S+:3\z/, assert_mends(work, queries: 4))
  end

  def test_eager_loading_by_join_batches_and_own_sql_can_be_added_to
    joined = "World::Keeper.includes(:badge).references(:badge).order(:id).map do |keeper|"
    assert_mends(unit(joined, "keeper.room_keys.map(&:id)", "end"), queries: 2)
    batches = unit("World::Keeper.find_each(batch_size: 3).map do |keeper|", "keeper.badge.id", "end")
    assert_mends(batches, queries: 5)
    work = unit("World::Keeper.find_by_sql('SELECT * FROM zoo_keepers').map do |keeper|", "keeper.badge.id", "end")
    finding = only_finding(work)
    code = finding.fix[/\Awrite (.*) instead of find_by_sql/, 1].sub("…", "SELECT * FROM zoo_keepers").sub("ActiveRecordZoo", "World")
    applied = run_copy(work) { |copy| copy.edit(finding.parent_location) { |line| line.sub(/World::Keeper.find_by_sql\(.*?\)/, code) } }
    assert_equal [nil, 2, []], [applied.error, applied.queries, applied.findings]
    assert_tried(work, [finding], measured(work), applied)
  end

  def test_sql_of_another_model_at_the_line_is_not_taken_for_the_load
    sql = "['SELECT * FROM zoo_room_keys WHERE keeper_id = ?', keeper.id]"
    work = unit("World::Keeper.order(:id).map { |keeper| World::RoomKey.find_by_sql(#{sql}).size }")
    assert_match(/\Aadd \.preload\(:room_keys\) where the keepers are loaded/, only_finding(work).fix)
  end

  def test_chosen_records_behind_a_join_table_become_an_association_of_their_own
    { "where(name: 'trick 1')" => ".map(&:id)", "exists?(name: 'trick 1')" => "", "order(name: :desc).first" => ".id" }.each do |code, rest|
      work = unit("World::Animal.order(:id).map do |animal|", "animal.tricks.#{code}#{rest}", "end")
      finding = only_finding(work)
      before = measured(work)
      applied = run_copy(work) { |copy| Written.new(finding.fix, copy, /World::Animal/, "tricks.#{code}").call }
      assert_equal [nil, before.result, []], [applied.error, applied.result, applied.findings], finding.fix
      assert_includes 2..3, applied.queries, finding.fix
      assert_includes Castellan::Doctor.try(finding) { work.call }.to_s, "not tried: an association through a join table"
    end
  end

  def test_one_chosen_record_becomes_an_association_of_its_own
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

  def test_some_chosen_records_become_an_association_of_their_own
    { KEY => "has_many :chosen_room_keys, -> { where(lost: false) }", "#{KEY}.order(door: :desc)" => "order(door: :desc)",
      "room_keys.working" => "-> { working }" }.each do |code, declared|
      assert_includes assert_mends(unit(KEEPERS, "keeper.#{code}.map(&:door)", "end"), queries: 2, reads: code), declared
    end
    { "#{KEY}.pluck(:door)" => ".chosen_room_keys.pluck(:door)", "#{KEY}.any?" => ".chosen_room_keys.any?",
      "#{KEY}.empty?" => ".chosen_room_keys.empty?", "room_keys.exists?(lost: true)" => ".chosen_room_keys.any?" }.each do |code, read|
      assert_includes assert_mends(unit(KEEPERS, "keeper.#{code}", "end"), queries: 2, reads: code), "read #{read} at"
    end
  end

  def test_a_chosen_record_further_down_through_others_or_of_a_subclass
    work = unit("World::Keeper.preload(:animals).order(:id).map do |keeper|",
                "keeper.animals.map { |animal| animal.meals.order(:id).last.id }", "end")
    assert_includes assert_mends(work, queries: 3, reads: "meals.order(:id).last"), "add .preload(animals: :last_meal)"
    through = unit(KEEPERS, "keeper.meals.order(:id).last.id", "end")
    assert_includes assert_mends(through, queries: 3, reads: "meals.order(:id).last"), "read .chosen_meals.first at"
    heir = unit("World::Lion.order(:id).map do |lion|", "lion.meals.where(feeder_id: 1).last&.id", "end")
    fix = assert_mends(heir, queries: 2, reads: "meals.where(feeder_id: 1).last")
    assert_includes fix, "declare in ActiveRecordZoo::Animal: has_one :last_meal"
    notes = unit(KEEPERS, "keeper.notes.order(:id).last.text", "end")
    assert_includes assert_mends(notes, queries: 2, reads: "notes.order(:id).last"), "as: :subject"
  end

  # The whole line is the reader's to rewrite; the fix says what to read.
  def test_a_line_that_asks_the_model_is_to_read_the_association
    { "World::Badge.find_by(keeper_id: keeper.id).id" => "badge", "World::RoomKey.where(keeper_id: keeper.id).map(&:id)" => "room_keys",
      "World::RoomKey.where(keeper_id: keeper.id).count" => "room_keys.size",
      "World::RoomKey.where(keeper_id: keeper.id).exists?" => "room_keys.any?",
      "World::RoomKey.where(keeper_id: keeper.id, lost: true).last.id" => "last_room_key" }.each do |code, read|
      finding = only_finding(work = unit(KEEPERS, code, "end"))
      assert_match(/ and read \.#{Regexp.escape(read)} at \S+:3(?:\z|; or)/, finding.fix)
      rest = code[/\)(?:\.last)?(\.(?:id|map.*))\z/, 1]
      assert_mends_rewritten(work, finding.fix, "keeper.#{read}#{rest}")
      assert_includes Castellan::Doctor.try(finding) { work.call }.to_s, ":3 asks the model and not the association of its record"
    end
  end

  def test_an_association_in_a_variable_is_read_as_well
    finding = only_finding(work = unit(KEEPERS, "keys = keeper.room_keys", "keys.where(lost: false).last.door", "end"))
    assert_includes finding.fix, "has_one :last_room_key, -> { where(lost: false).order(id: :desc) }"
    assert_predicate Castellan::Doctor.try(finding) { work.call }, :accepted?
    limited = unit(KEEPERS, "keys = keeper.room_keys", "keys.first(2).map(&:door)", "end")
    assert_includes only_finding(limited).fix_refused, "a limit for each"
  end

  def test_what_is_another_query_than_the_association_is_not_said_to_be_preloaded
    ["joins(:keeper).map(&:door)", "select(:id).map(&:id)", "distinct.count(:door)", "includes(:keeper).map(&:door)"]
      .each do |code|
        reason = assert_refused(unit(KEEPERS, "keeper.room_keys.#{code}", "end"), ".preload(:room_keys)")
        assert_includes reason, "is asked for with .#{code[/\w+/]} at"
      end
  end

  def test_calculations_are_read_from_what_is_loaded
    { "count" => ".size instead of .count", "exists?" => ".any? instead of .exists?", "sum(:door)" => ".filter_map(&:door).sum instead",
      "maximum(:door)" => ".filter_map(&:door).max", "minimum(:door)" => ".filter_map(&:door).min" }.each do |code, written|
      assert_includes assert_mends(unit(KEEPERS, "keeper.room_keys.#{code}", "end"), queries: 2), written
    end
    assert_mends(unit(KEEPERS, "keeper.meals.count", "end"), queries: 3)
    assert_mends(unit(KEEPERS, "all = []", "keeper.room_keys.find_each { |key| all << key.door }", "all", "end"), queries: 2)
  end

  def test_what_is_loaded_already_need_not_be_loaded_twice
    { "count" => "size", "exists?" => "any?", "sum(:door)" => "filter_map(&:door).sum" }.each do |bad, good|
      fix = assert_mends(unit(KEEPERS.sub(".order", ".preload(:room_keys).order"), "keeper.room_keys.#{bad}", "end"), queries: 2)
      assert_match(/\Aroom_keys is loaded with the keepers already, at \S+:2; write \.#{Regexp.escape(good)} instead of /, fix)
      refute_includes fix, ".preload("
    end
    work = unit("World::Keeper.preload(animals: :meals).order(:id).map do |keeper|", "keeper.animals.map { |one| one.meals.count }", "end")
    assert_match(/\Ameals is loaded with the keepers already/, assert_mends(work, queries: 3))
  end

  def test_records_that_are_read_in_batches_are_read_from_what_is_loaded
    chosen = unit(KEEPERS, "all = []", "keeper.#{KEY}.find_each { |key| all << key.door }", "all", "end")
    assert_includes assert_mends(chosen, queries: 2, reads: "#{KEY}.find_each"), "read .chosen_room_keys.each at"
    work = unit(KEEPERS, "World::RoomKey.where(keeper_id: keeper.id).find_each.map(&:door)", "end")
    finding = only_finding(work)
    assert_match(/ and write \.room_keys\.each instead of \.find_each on the model at \S+:3\z/, finding.fix)
    assert_mends_rewritten(work, finding.fix[/\A.*?(?= and write)/], "keeper.room_keys.each.map(&:door)")
  end

  def test_of_several_calls_on_one_line_each_has_its_fix
    findings = findings_of(unit(KEEPERS, "[keeper.#{KEY}.count, keeper.room_keys.count]", "end"))
    grouped = findings.map { |finding| finding.fix[/\w+::RoomKey\..*?count/] }
    assert_equal [".where(lost: false).group(:keeper_id).count", ".group(:keeper_id).count"], grouped.map { |code| code[/\)(\..*)/, 1] }
    assert_match(/\Aadd \.preload\(:room_keys\)/, findings.last.fix)
  end

  def test_a_calculation_for_each_group_is_grouped_by_two_columns
    fix = only_finding(unit(KEEPERS, "keeper.room_keys.group(:lost).count", "end")).fix
    found, queries = evaluate(fix[/: (ActiveRecordZoo.*) \(what/, 1], values: World::Keeper.ids)
    assert_equal 1, queries
    World::Keeper.order(:id).each do |keeper|
      expected = keeper.room_keys.group(:lost).count
      assert_equal expected, found.select { |(id, _lost), _count| id == keeper.id }.transform_keys(&:last), fix
    end
  end

  def test_a_grouped_calculation_answers_for_each
    { "room_keys.count" => "or count them in one query: ", "room_keys.sum(:door)" => "or ask for all at once: ",
      "room_keys.average(:door)" => LOOP, "#{KEY}.count" => LOOP,
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
      "World::RoomKey.where(keeper_id: value).order(:id).limit(1 + 1).to_a" => [[1, 2, 99], ->(found, value) { found.fetch(value, []) }],
      "World::RoomKey.where(keeper_id: value).order(door: :desc).first(2)" => [[1, 2], ->(found, value) { found[value] }],
      "World::RoomKey.where(keeper_id: value).order(door: :desc).first(1 + Integer(1))" => [[1, 2], ->(found, value) { found[value] }],
      "World::RoomKey.where(keeper_id: value).count" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value, lost: true).sum(:door)" => [[1, 2, 3], ->(found, value) { found.fetch(value, 0) }],
      "World::RoomKey.where(keeper_id: value).exists?" => [[1, 2, 99], ->(found, value) { found.include?(value) }]
    }.each { |code, (values, read)| assert_looked_up(code, values, &read) }
  end

  def test_records_of_several_classes_are_read_again_as_what_they_have_in_common
    work = unit("World::Animal.order(:id).map do |animal|", "animal.reload.id", "end")
    assert_includes only_finding(work).fix, "ask once: ActiveRecordZoo::Animal.where(id: values).index_by(&:id)"
  end

  def test_pages_of_each_value_have_no_fix
    work = unit("[1, 2].map do |value|", "World::RoomKey.where(keeper_id: value).order(:id).limit(2).offset(1).to_a", "end")
    assert_includes only_finding(work).fix_refused, "a page for each value"
  end

  def test_a_look_up_that_the_line_does_not_show_is_not_guessed_at
    work = unit("[[1, false], [2, true]].map do |keeper, lost|", "World::RoomKey.where(keeper_id: keeper, lost: lost).to_a", "end")
    assert_match(/conditions on keeper_id, lost, and \S+:3 does not show which changes\z/, only_finding(work).fix_refused)
    work = unit("[1, 2].map do |id|", "World::RoomKey.where(keeper_id: id).where('door > 0').to_a", "end")
    assert_includes only_finding(work).fix, "ActiveRecordZoo::RoomKey.where(keeper_id: values).where(…)"
    work = unit("[1, 2].map do |id|", "World::RoomKey.joins(:keeper).where(zoo_keepers: { boss_id: id }).to_a", "end")
    assert_nil only_finding(work).fix
  end

  def test_where_no_preload_can_help_it_says_why
    { "room_keys.limit(2).to_a" => "a limit for each record", "room_keys.where(door: keeper.id).to_a" => "differ from record to record",
      "room_keys.find(keeper.id * 3)" => "RoomKey.where(id: values).index_by(&:id)",
      "meals.where(feeder_id: 1).count" => "join and group in one query" }.each do |code, reason|
      preload = code.start_with?("meals") ? ".preload(:meals)" : ".preload(:room_keys)"
      assert_includes assert_refused(unit(KEEPERS, "keeper.#{code}", "end"), preload), reason
    end
    assert_includes only_finding(unit(KEEPERS, "keeper.room_keys.first(2)", "end")).fix_refused, "and without it all are read"
    ["keeper.room_keys.first(most)", "keeper.room_keys.limit(most).to_a",
     "World::RoomKey.where(keeper_id: keeper.id).limit(most).to_a"].each do |code|
      work = unit("most = 2", KEEPERS, code, "end")
      assert_includes only_finding(work).fix_refused, "and without it all are read", code
    end
  end

  def test_writes_one_by_one_become_one_statement
    { "World::Trick.create!(name: value.to_s)" => [[{ name: "a" }, { name: "b" }], "insert_all!"],
      "World::Trick.find(value).update!(name: 'new')" => [[{ id: 1, name: "a" }, { id: 2, name: "b" }], "upsert_all"],
      "World::Trick.delete(value)" => [[1, 2], "delete_all"] }.each do |code, (rows, method)|
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

  # The method that a finding is of, and its module.
  def units_of(finding) = [File.basename(finding.location).sub(/\.rb:\d+\z/, ""), Units]

  def assert_looked_up(code, values, &read)
    finding = only_finding(unit("#{values.inspect}.map do |value|", code, "end"))
    found, queries = evaluate(finding.fix.to_s[/ask once: (.*)\z/, 1], values: values)
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
