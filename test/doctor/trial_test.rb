# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "castellan/doctor"
require "castellan/instrument/threads"
require_relative "../detect/fixes/active_record_zoo"
require_relative "../detect/fixes/sequel_zoo"

# The result of a trial and its side effects; test/detect/fixes compares its counts with applied fixes.
class TrialTest < Minitest::Test
  include Castellan::OwnDatabases

  World = ActiveRecordZoo
  Doctor = Castellan::Doctor

  def own_databases = [ActiveRecordZoo::Base, SequelZoo::DB]

  def test_an_accepted_trial_has_figures_of_before_and_after
    trial = try { json(keepers.map { |keeper| keeper.badge.id }) }
    assert_predicate trial, :accepted?
    assert_predicate trial, :tried?
    assert_predicate trial, :same?
    assert_equal [7, 2], [trial.before.queries, trial.after.queries]
    assert_operator trial.after.allocated_objects, :<, trial.before.allocated_objects
    [trial.before, trial.after].each { |run| assert_operator run.duration_ns, :>, run.sql_ns }
    assert_match(/\A7 → 2 queries, [\d.]+ → [\d.]+ ms \(SQL [\d.]+ → [\d.]+ ms\), [\d,]+ → [\d,]+ objects; the same bytes\z/, trial.to_s)
    assert_predicate trial, :frozen?
  end

  def test_a_trial_can_be_written_as_json
    row = JSON.parse(JSON.generate(try { json(keepers.map { |keeper| keeper.badge.id }) }.to_h))
    assert_equal [true, true, true, [], nil], row.values_at("accepted", "tried", "same", "masked", "reason")
    assert_equal %w[queries duration_ms sql_ms allocated_objects], row["after"].keys
    assert_equal [7, 2], row.values_at("before", "after").map { |run| run["queries"] }
  end

  def test_responses_are_compared_by_content
    bodies = [->(ids) { ids.join(",") }, ->(ids) { [200, {}, [ids.join(",")]] }, ->(ids) { Rack::MockResponse.new(200, {}, ids.join) },
              ->(ids) { ids }, ->(ids) { { "ids" => ids, at: Time.at(0), sym: :a } }, ->(_ids) { World::Badge.all }, ->(_ids) {},
              ->(_ids) { World::Badge.first }, ->(ids) { Struct.new(:ids).new(ids) }, ->(ids) { ids.lazy.map(&:to_s) }]
    bodies.each do |body|
      trial = try { body.call(keepers.map { |keeper| keeper.badge.id }) }
      assert_predicate trial, :accepted?, trial.to_s
    end
    error = assert_raises(Doctor::Error) { try { keepers.each { |keeper| keeper.badge.id } && Object.new } }
    assert_includes error.message, "returned a Object, which cannot be compared: let it return the response, its body, or plain values"
  end

  def test_queries_of_a_streamed_body_are_counted
    finding = finding_of { badges_at(nil) }
    trial = Doctor.try(finding) { [200, {}, Enumerator.new { |body| keepers.each { |keeper| body << keeper.badge.id.to_s } }] }
    assert_equal [true, 7, 2], [trial.accepted?, trial.before.queries, trial.after.queries]
  end

  def test_queries_of_threads_that_the_block_starts_are_counted
    asking = try { json(keepers.map { |keeper| Thread.new { keeper.badge.id }.value }) }
    assert_equal [true, 7, 2], [asking.accepted?, asking.before.queries, asking.after.queries], asking.to_s
    loading = try { json(Thread.new { keepers.map { |keeper| keeper.badge.id } }.value) }
    assert_equal [true, 7, 2], [loading.accepted?, loading.before.queries, loading.after.queries], loading.to_s
  end

  def test_values_that_differ_between_two_runs_are_masked_and_listed
    times = 0
    trial = try do
      rows = keepers.map { |keeper| { badge: keeper.badge.id, "seen at" => (times += 1) } }
      json({ data: rows, meta: { run: times, kept: 1 } })
    end
    assert_predicate trial, :accepted?
    assert_equal ['$.data[*]["seen at"]', "$.meta.run"], trial.masked
    assert_includes trial.to_s, 'the same but for what differs without it, too: $.data[*]["seen at"], $.meta.run'
  end

  def test_only_the_columns_of_a_table_that_differ_are_masked
    times = 0
    trial = try { json(keepers.map { |keeper| [keeper.badge.id, times += 1, keeper.association(:badge).loaded?] }) }
    assert_equal ["$[*][1]"], trial.masked
    assert_equal true, trial.same?, trial.to_s
    spoilt = try { json(keepers.map { |keeper| [keeper.association(:badge).loaded?, keeper.badge.id, times += 1] }) }
    assert_equal ["$[*][2]"], spoilt.masked
    assert_includes spoilt.to_s, "does not help: the answer differs at $[*][0]"
  end

  def test_a_response_without_a_body_is_not_reported_as_the_same_bytes
    trial = try { [200, {}, keepers.map { |keeper| keeper.badge.id }.first(0)] }
    assert_predicate trial, :accepted?
    assert trial.to_s.end_with?("; the same status, and no body to compare"), trial.to_s
  end

  def test_lines_of_a_text_are_masked_but_not_a_whole_body
    times = 0
    assert_equal ["line 2"], try { "#{keepers.map { |keeper| keeper.badge.id }}\nrun #{times += 1}\n" }.masked
    trial = try { "#{keepers.map { |keeper| keeper.badge.id }} run #{times += 1}" }
    refute_predicate trial, :accepted?
    assert_includes trial.to_s, "not tried: two runs without the fix return different responses"
  end

  def test_a_fix_that_changes_the_response_is_never_accepted
    trial = try { json(keepers.map { |keeper| { known: keeper.association(:badge).loaded?, badge: keeper.badge.id } }) }
    refute_predicate trial, :accepted?
    refute_predicate trial, :same?
    assert_match(/\Adoes not help: the answer differs at \$\[\*\]\.known \(7 → 2 queries, /, trial.to_s)
    order = try { json(keepers.to_h { |keeper| [keeper.association(:badge).loaded? ? "b" : "a", keeper.badge.class.name] }) }
    assert_includes order.reason, "differs at $"
    status = try { [keepers.map { |keeper| keeper.association(:badge).loaded? | keeper.badge.nil? }.all? ? 200 : 201, {}, ["same"]] }
    assert_equal "the answer differs at status (201, then 200)", status.reason
  end

  def test_a_response_in_another_order_is_rejected_and_named
    trial = try do
      badges = keepers.map { |keeper| [keeper.association(:badge).loaded?, keeper.badge.id] }
      ids = badges.map(&:last)
      json(badges.first.first ? ids.reverse : ids)
    end
    refute_predicate trial, :accepted?
    assert trial.reordered
    assert_match(/\A(?:faster, in another order: order the association \(7 → 2|does not help: the answer differs at)/, trial.to_s)
    assert_equal 0, trial.gain_ns
    other = try { json(keepers.map { |keeper| [keeper.association(:badge).loaded?, keeper.badge.id] }) }
    refute other.reordered
  end

  def test_fixes_of_a_request_are_tried_alone_and_together
    application = lambda do |_env|
      badges = World::Keeper.order(:id).map { |keeper| keeper.badge.id }
      meals = World::Animal.order(:id).map { |animal| animal.meals.map(&:id) }
      locks = World::RoomKey.order(:id).map { |key| World::RoomKey.find(key.id).door }
      [200, {}, [JSON.generate([badges, meals, locks])]]
    end
    findings = findings_of { application.call({}) }
    trials = Doctor::Trials.of(application, Doctor::RackRequest.new("/"), findings)
    alone, together = trials.partition { |finding, _trial| finding != :together }.map(&:to_h)
    assert_equal findings.size, alone.size
    assert_equal [false, true, true], alone.values.map(&:accepted?).sort_by(&:to_s)
    assert_predicate together[:together], :accepted?
    saved = alone.values.select(&:accepted?).sum { |trial| trial.before.queries - trial.after.queries }
    assert_equal saved, together[:together].before.queries - together[:together].after.queries
    assert_includes alone.values.reject(&:accepted?).first.to_s, "not tried: the line that queries must be rewritten"
  end

  def test_a_fix_that_saves_no_query_is_never_accepted
    finding = finding_of { keepers.map { |keeper| keeper.badge.id } }
    wrong = Castellan::Finding.new(**finding.to_h, preload: { room_keys: {} })
    trial = Doctor.try(wrong) { badges_at(wrong) }
    refute_predicate trial, :accepted?
    assert_match(/\Adoes not help: there are no fewer queries \(7 → 8 queries/, trial.to_s)
  end

  def test_a_fix_that_makes_the_block_raise_is_never_accepted
    finding = finding_of { keepers.map { |keeper| keeper.badge.id } }
    trial = Doctor.try(Castellan::Finding.new(**finding.to_h, preload: { nothing: {} })) { badges_at(finding) }
    assert_equal [false, true, nil], [trial.accepted?, trial.tried?, trial.after]
    assert_match(/\Adoes not help: with the fix the work fails: ActiveRecord::AssociationNotFoundError: /, trial.to_s)
  end

  def test_a_slower_fix_with_fewer_queries_is_not_accepted
    World::Base.transaction do
      World::RoomKey.insert_all(Array.new(15_000) { |door| { keeper_id: (door % 6) + 1, door: door } })
      trial = try { json(World::Keeper.order(:id).map { |keeper| keeper.room_keys.where(lost: false).last.door }) }
      assert_includes trial.reason, "there are fewer queries, but they take longer and make more objects"
      raise ActiveRecord::Rollback
    end
  end

  def test_a_fix_that_cannot_be_tried_has_a_reason
    { "there is no fix to try: the conditions on" => -> { keepers.map { |keeper| keeper.room_keys.where(door: keeper.id).to_a } },
      "the line that queries must be rewritten for it" => -> { [1, 2].map { |id| World::Trick.create!(name: id) } },
      "there is no fix to try: test/" => -> { [1, 2].map { |id| World::Trick.where(id: id).where("id > 0").to_a } } }
      .each do |reason, work|
      trial = Doctor.try(rolled_back { findings_of(&work).max_by(&:count) }, &work)
      assert_equal [false, false, nil, nil], [trial.accepted?, trial.tried?, trial.before, trial.after]
      assert_includes trial.to_s, "not tried: #{reason}"
    end
  end

  def test_a_cache_filled_by_the_first_run_is_not_counted_as_success
    kept = nil
    work = -> { kept ||= json(keepers.map { |keeper| keeper.badge.id }) }
    finding = finding_of(&work)
    trial = Doctor.try(finding, &work)
    assert_equal "not tried: what was found is not repeated when the work runs again; was something kept meanwhile, or queried by " \
                 "another thread?", trial.to_s
  end

  def test_writes_of_every_run_are_rolled_back
    runs = 0
    trial = try do
      runs += 1
      World::Trick.create!(name: "of a trial")
      SequelZoo::Trick.create(name: "of a trial")
      json(keepers.map { |keeper| keeper.badge.id })
    end
    assert_predicate trial, :accepted?
    assert_includes 5..7, runs # one was watched; those of a slow machine are not repeated
    assert_equal [1, 0], [World::Trick.where(name: "of a trial").count, SequelZoo::Trick.where(name: "of a trial").count - 1]
  ensure
    World::Trick.where(name: "of a trial").delete_all
    SequelZoo::Trick.where(name: "of a trial").delete
  end

  def test_an_outer_transaction_stays_open
    World::Base.transaction do
      World::Trick.create!(name: "of a test")
      assert_predicate try { World::Trick.create!(name: "of a trial") && json(keepers.map { |keeper| keeper.badge.id }) }, :accepted?
      assert_equal ["of a test", "of a trial"], World::Trick.where("name LIKE 'of a%'").order(:id).pluck(:name)
      raise ActiveRecord::Rollback
    end
    assert_equal 0, World::Trick.where("name LIKE 'of a%'").count
  end

  def test_a_trial_restores_relations_models_and_hooks
    before = World::Keeper.reflect_on_all_associations.map(&:name)
    relation = nil
    trial = try { (relation = World::Keeper.order(:id)).map { |keeper| keeper.room_keys.where(lost: false).last.door } }
    assert_predicate trial, :accepted?
    assert_equal [[], []], [relation.preload_values, relation.includes_values]
    assert_equal before, World::Keeper.reflect_on_all_associations.map(&:name)
    refute_respond_to World::Keeper.new, :last_room_key
    assert_nil Doctor::Trial::Injection.current
    refute_predicate Castellan::Instrument, :subscribed?
  end

  def test_two_reads_of_an_association_on_one_line_are_tried_apart
    [-> { json(keepers.map { |one| [one.room_keys.where(lost: false).order(:id).last.door, one.room_keys.order(:id).first.door] }) },
     lambda {
       all = SequelZoo::Keeper.order(:id).all
       json(all.map { |one| [one.room_keys_dataset.where(lost: false).order(:id).last.door, one.room_keys_dataset.order(:id).first.door] })
     }].each do |work|
      findings = findings_of(&work)
      assert_equal %i[last_room_key first_room_key], findings.map { |finding| finding.declaration[:name] }
      findings.each do |finding|
        trial = Doctor.try(finding, &work)
        assert_predicate trial, :accepted?, trial.to_s
        assert_equal [13, 8], [trial.before.queries, trial.after.queries]
      end
    end
  end

  def test_a_trial_restores_models_of_sequel
    before = SequelZoo::Keeper.associations
    trial = try { SequelZoo::Keeper.order(:id).all.map { |keeper| keeper.room_keys_dataset.where(lost: false).order(:id).last.door } }
    assert_predicate trial, :accepted?
    assert_equal before, SequelZoo::Keeper.associations
    refute_includes SequelZoo::Keeper.association_reflections.keys, :last_room_key
    assert_empty SequelZoo::Keeper.subclasses.filter_map(&:name)
  end

  def test_a_trial_does_not_affect_other_threads
    asked = Queue.new
    told = Queue.new
    other = Thread.new { told << keepers.map { |keeper| keeper.association(:badge).loaded? } while asked.pop }
    loaded = []
    try do
      asked << true
      loaded << told.pop
      json(keepers.map { |keeper| keeper.badge.id })
    end
    assert_equal [[false] * 6] * 7, loaded
  ensure
    asked.close
    other.join
  end

  def test_code_at_another_line_is_recognized_by_its_load
    first = finding_of { json(World::Keeper.order(:id).map { |keeper| keeper.room_keys.where(lost: false).last.door }) }
    trial = Doctor.try(first) { json(World::Keeper.order(:id).map { |keeper| keeper.room_keys.where(lost: false).last.door }) }
    assert_equal [true, 7, 2], [trial.accepted?, trial.before.queries, trial.after.queries]
    finding = Castellan::Detect.watch(slow_ms: nil) { SequelZoo::Keeper.all.map { |keeper| keeper.badge.id } }.first
    assert_predicate Doctor.try(finding) { SequelZoo::Keeper.all.map { |keeper| keeper.badge.id } }, :accepted?
  end

  def test_different_code_is_not_tried
    finding = finding_of { badges_at(nil) }
    trial = Doctor.try(finding) { Array.new(2) { |id| World::Keeper.find(id + 1) }.map { |keeper| keeper.badge.id } }
    assert_equal "not tried: nothing was loaded at #{finding.parent_location}; is this the work that the finding is of?", trial.to_s
  end

  def test_several_findings_with_one_change_are_tried_together
    work = -> { json(keepers.map { |keeper| [keeper.badge.id, keeper.notes.map(&:text)] }) }
    findings = findings_of(&work)
    assert_equal 2, findings.size
    trial = Doctor.try(*findings, &work)
    assert_equal [findings, 13, 3], [trial.findings, trial.before.queries, trial.after.queries]
  end

  def test_only_get_and_head_are_tried
    finding = finding_of { keepers.map { |keeper| keeper.badge.id } }
    runs = 0
    work = lambda do
      runs += 1
      ActiveSupport::Notifications.instrument("start_processing.action_controller", method: "PATCH") { badges_at(finding) }
    end
    assert_equal "not tried: the work answers a PATCH, and only GET and HEAD are tried", Doctor.try(finding, &work).to_s
    assert_equal 1, runs
  end

  def test_invalid_calls_and_castellan_off_raise
    finding = finding_of { keepers.map { |keeper| keeper.badge.id } }
    assert_includes assert_raises(ArgumentError) { Doctor.try { 1 } }.message, "give a finding"
    assert_includes assert_raises(ArgumentError) { Doctor.try(finding) }.message, "give the work"
    with_env("CASTELLAN" => "off") { assert_includes Doctor.try(finding) { 1 }.to_s, "not tried: CASTELLAN=off is set" }
    assert_raises(KeyError) { Doctor.try(finding) { raise KeyError } }
  end

  private

  def keepers = World::Keeper.order(:id).to_a

  # The finding's code on one line; `keepers` is the load.
  def badges_at(_finding) = json(keepers.map { |keeper| keeper.badge.id })

  def json(value) = JSON.generate(value)

  def findings_of(&work) = Castellan::Detect.watch(slow_ms: nil, &work)

  def finding_of(&work)
    findings = findings_of(&work)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end

  def try(&work) = Doctor.try(finding_of(&work), &work)

  def rolled_back
    result = nil
    World::Base.transaction do
      result = yield
      raise ActiveRecord::Rollback
    end
    result
  end
end
