# frozen_string_literal: true

require_relative "active_record_world"
require_relative "accuracy/records"
require_relative "accuracy/datasets"
require_relative "accuracy/samples"
Dir[File.join(__dir__, "accuracy/cases/*_{record,dataset}_samples.rb"),
    File.join(__dir__, "accuracy/cases/{record,dataset}_samples.rb")].each { |file| require file }

class DetectKnownVerdictsTest < Minitest::Test
  World = ActiveRecordWorld
  DIRECTORY = Dir.mktmpdir("castellan-verdicts")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }
  Accuracy::Records.connect(adapter: "sqlite3", database: File.join(DIRECTORY, "records.sqlite3"), pool: 20)
  KnownVerdicts = Castellan::Detect::KnownVerdicts

  def setup
    @verdicts = KnownVerdicts.new(repeats: 2, min_ns: 0)
  end

  def test_an_equal_request_reuses_the_verdict
    first, second = Array.new(2) { @verdicts.findings(tally { employees }) }
    assert_same first.first.fix, second.first.fix
    assert_equal untimed(first), untimed(second)
  end

  def test_a_reused_verdict_has_the_time_of_its_request
    2.times do
      tally = tally { employees }
      assert_equal tally.groups.last.total_ns, @verdicts.findings(tally).first.total_ns
    end
  end

  def test_another_count_or_line_is_judged_again
    assert_equal [5, 3, 5], [employees_of(5), employees_of(3), employees_of(5)]
    other = @verdicts.findings(tally { World::User.all.to_a.each(&:employee) })
    assert_includes other.first.location, ":#{__LINE__ - 1}"
  end

  def test_a_changed_file_is_judged_again
    code = "def (KnownVerdictsCode = Object.new).run = ActiveRecordWorld::User.all.to_a.each(&:employee)"
    Dir.mktmpdir do |directory|
      load(File.join(directory, "code.rb").tap { |file| File.write(file, code) })
      sources = ["#{code} # then", "#{code} # now"].map do |text|
        File.write(File.join(directory, "code.rb"), text)
        @verdicts.findings(tally { KnownVerdictsCode.run }).first.source
      end
      assert_equal ["#{code} # then", "#{code} # now"], sources
    end
  ensure
    Object.send(:remove_const, :KnownVerdictsCode)
  end

  def test_a_reused_verdict_has_the_stack_of_its_request
    shared = -> { World::User.all.to_a.each(&:employee) }
    tallies = [tally { shared.call },
               tally { shared.call }]
    stacks = tallies.map { |one| Castellan::Detect::Verdict.new(one).findings.first.stack }
    refute_equal(*stacks)
    assert_equal stacks, tallies.map { |one| @verdicts.findings(one).first.stack }
  end

  def test_a_new_model_is_judged_again
    World::Base.connection.create_table(:late_things) { |table| table.integer(:user_id) }
    asked = -> { [1, 2, 3].each { |id| World::Base.connection.select_all("SELECT * FROM late_things WHERE user_id = #{id}") } }
    fixes = Array.new(2) { @verdicts.findings(tally(&asked)).first.fix }
    World.const_set(:LateThing, Class.new(World::Base) { self.table_name = "late_things" })
    assert_same(*fixes)
    assert_includes @verdicts.findings(tally(&asked)).first.fix, "LateThing"
  ensure
    World.send(:remove_const, :LateThing)
    World::Base.connection.drop_table(:late_things)
  end

  def test_it_keeps_a_bounded_number
    (KnownVerdicts::MOST + 5).times do |number|
      @verdicts.findings(tally { employees }.tap { |tally| tally.loaded("Other#{number}", 2, nil) })
    end
    assert_operator @verdicts.instance_variable_get(:@known).size, :<=, KnownVerdicts::MOST
  end

  def test_reused_verdicts_equal_new_ones_on_every_sample
    large_runs_only
    worlds.each do |world, samples|
      samples.each do |sample|
        2.times do
          tally = tally { sample.run(world) }
          assert_equal Castellan::Detect::Verdict.new(tally).findings, @verdicts.findings(tally), sample.name
        end
      end
    end
  end

  private

  def worlds
    { Accuracy::Records => /RecordSamples\z/, Accuracy::Datasets => /DatasetSamples\z/ }.to_h do |world, pattern|
      [world, world.constants.grep(pattern).flat_map { |name| world.const_get(name).samples }]
    end
  end

  def employees = World::User.all.to_a.each(&:employee)

  def employees_of(count)
    @verdicts.findings(tally { World::User.limit(count).to_a.each(&:employee) }).first.count
  end

  def tally(&work) = Castellan::Detect::Tally.new.tap { |tally| Castellan::Instrument.record(tally, &work) }

  def untimed(findings) = findings.map { |finding| finding.to_h.merge(total_ns: nil) }
end
