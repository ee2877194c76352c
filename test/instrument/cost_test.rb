# frozen_string_literal: true

require_relative "../detect/active_record_world"

# Counts the objects that observation allocates, because time depends on the machine.
class InstrumentCostTest < Minitest::Test
  World = ActiveRecordWorld
  ActiveRecordInstrument = Castellan::Instrument::ActiveRecordInstrument

  # An association with a method without arguments, and one with options.
  class Walked
    def walk = find_target
    def reflection = World::User.reflect_on_association(:employee)

    private

    def find_target = :found
  end

  class Forwarding < Walked
    private

    def find_target(async: false) = [:found, async]
    prepend ActiveRecordInstrument::ReadsWithOptions
  end

  class Bare < Walked
    prepend ActiveRecordInstrument::Reads
  end

  # Records the observed reads.
  class Walks
    attr_reader :events

    def initialize = @events = []
    def query(_sql, _name, _started_ns, _duration_ns, _cached, _rows, _binds) = nil
    def enter(model, association) = @events << [model, association]
    def leave = @events << :left
  end

  def test_both_hooks_notify_of_the_read_and_return_its_value
    [[Bare, :found], [Forwarding, [:found, false]]].each do |type, found|
      walks = Walks.new
      assert_equal found, Castellan::Recording.open(walks) { type.new.walk }
      assert_equal [[World::User, :employee], :left], walks.events
      assert_equal found, type.new.walk
    end
  end

  def test_a_repeated_statement_and_read_allocate_no_object
    skip "the C extension is not built" unless Castellan::CallSite && Castellan.const_defined?(:NativeCallSite)
    users = World::User.all.to_a
    work = -> { 40.times { users.each { |user| user.association(:employee).reset && user.employee } } }
    Castellan::Instrument.subscribe
    tally = Castellan::Detect::Tally.new
    watched = -> { Castellan::Recording.open(tally, &work) }
    2.times { [work, watched].each(&:call) }
    assert_in_delta allocated_objects(&work), allocated_objects(&watched), 20
  ensure
    Castellan::Instrument.unsubscribe
  end
end
