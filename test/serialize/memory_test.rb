# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "random_documents"

# Runs the C encoder while the garbage collector runs at every allocation, moves objects, or an error
# interrupts it.
class SerializeMemoryTest < Minitest::Test
  include Castellan::Drafts

  def setup
    skip "needs the C extension (rake compile)" unless Castellan::Serialize.native?
  end

  # In its own process, as the next: each collection would mark all that other tests have loaded.
  def test_collecting_at_every_allocation_changes_no_byte
    large_runs_only
    return assert_includes alone, "1 runs, 1 assertions, 0 failures" unless ENV.key?("CASTELLAN_ALONE")

    plan, row_set = build(everything)
    template = Castellan::Serialize::Template.new(plan)
    expected = both(Castellan::Serialize::RubyEncoder, row_set, template)
    assert_equal expected, stressed { both(Castellan::Serialize::NativeEncoder, row_set, template) }
  end

  # In its own process: a collector that moves objects also moves those of the libraries that other tests
  # loaded.
  def test_moving_objects_changes_no_byte
    skip "needs a Ruby whose collector can move objects" unless GC.respond_to?(:auto_compact=)
    return moving_objects if ENV.key?("CASTELLAN_ALONE")

    assert_includes alone, "1 runs, 100 assertions, 0 failures"
  end

  # @return [String] the output of this test in a process of its own
  def alone
    extension = $LOADED_FEATURES.grep(%r{/castellan_ext\.}).first # `rake asan` loads another
    output, status = Open3.capture2e({ "CASTELLAN_ALONE" => "1", "LD_PRELOAD" => ENV.fetch("CASTELLAN_PRELOAD", nil) }, RbConfig.ruby,
                                     "-r#{extension}", "-I#{extension.delete_suffix("/castellan/#{File.basename(extension)}")}", "-Ilib",
                                     "-Itest", __FILE__, "-n", name, chdir: ROOT)
    assert status.success?, output
    output
  end

  def moving_objects
    compacting do
      100.times do |number|
        _plan, row_set, template = document(number)
        expected = both(Castellan::Serialize::RubyEncoder, row_set, template)
        GC.compact if (number % 20).zero?
        assert_equal expected, both(Castellan::Serialize::NativeEncoder, row_set, template), "seed #{number}"
      end
    end
  end

  def test_a_document_cut_short_leaks_nothing
    rows = Array.new(2000) { |number| [number, "x" * 50, number == 1999 ? "\xff" : "fine"] }
    roles = draft("roles", { id: :integer }, [[1]])
    plan, row_set = build(draft("things", { id: :integer, name: :text, note: :text }, rows,
                                edges: [edge(:roles, Pairs.new([[5, 1]] * 1000, 0, 1), type: "roles", many: true, to: roles)]))
    template = Castellan::Serialize::Template.new(plan)
    attempt = ->(*) { assert_raises(Castellan::EncodingError) { Castellan::Serialize::NativeEncoder.encode(row_set, template) } }
    50.times(&attempt)
    before = resident_kb
    400.times(&attempt)
    assert_operator resident_kb - before, :<, 20_000 # one leaked buffer per document would be 100,000
  end

  def test_the_encoder_works_after_an_error_in_a_document
    plan, row_set = build(draft("things", { id: :integer, name: :text }, [[1, "a"], [2, "\xff"]]))
    template = Castellan::Serialize::Template.new(plan)
    assert_raises(Castellan::EncodingError) { Castellan::Serialize::NativeEncoder.encode(row_set, template) }
    row_set.tables[0].rows[1][1] = "b"
    assert_equal Castellan::Serialize::RubyEncoder.encode(row_set, template), Castellan::Serialize::NativeEncoder.encode(row_set, template)
  end

  def test_a_template_is_shared_by_threads
    _plan, row_set, template = document(12)
    expected = Castellan::Serialize::RubyEncoder.encode(row_set, template).body
    bodies = Array.new(4) {
      Thread.new {
        Array.new(200) {
          Castellan::Serialize::NativeEncoder.encode(row_set, template).body
        }
      }
    }.flat_map(&:value)
    assert_equal [expected], bodies.uniq
  end

  def test_malformed_rows_raise_without_a_crash
    [[nil], [1], [[]], ["text"], [[1], nil]].each do |rows|
      plan, row_set = build(draft("things", { id: :integer, name: :text }, rows))
      template = Castellan::Serialize::Template.new(plan)
      assert_raises(TypeError, Castellan::EncodingError, ArgumentError, rows.inspect) { Castellan::Serialize::NativeEncoder.encode(row_set, template) }
    end
    assert_raises(TypeError) { Castellan::Native.encode_each(Struct.new(:compiled).new(Object.new), []) }
  end

  def test_a_row_set_of_another_plan_raises
    plan, = build(draft("things", { id: :integer }, []))
    _, other = build(draft("things", { id: :integer }, [],
                           edges: [edge(:roles, InColumn.new(0), type: "roles", to: draft("roles", { id: :integer }, []))]))
    assert_raises(ArgumentError) { Castellan::Serialize::NativeEncoder.encode(other, Castellan::Serialize::Template.new(plan)) }
  end

  private

  # One of each: holes, computed values, floats, times, both kinds of links, and ids that only Ruby parses.
  def everything
    roles = draft("roles", { id: :text, mine: :viewer, share: :float }, [["a\"b", 0.1], [:odd, 1.5], [2**70, 2]])
    boss = draft("users", { id: :integer, label: ['"x"'] }, [[3]])
    draft("users", { id: :integer, name: :text, label: ['"</a>"', "{}"], at: :datetime, price: :decimal },
          [[1, "é".encode("ISO-8859-1"), Time.utc(2024), 1.5, 3], [2, "\u2028", "2024-01-01 00:00:00+02", "1e3", 3]],
          edges: [edge(:roles, Pairs.new([[1, "a\"b"], [2, :odd], [1, 2**70]], 0, 1), type: "roles", many: true, to: roles),
                  edge(:boss, InColumn.new(4), type: "users", to: boss)])
  end

  def document(seed)
    plan, row_set = build(Castellan::RandomDocuments.new(Random.new(seed)).draft)
    [plan, row_set, Castellan::Serialize::Template.new(plan)]
  end

  def both(encoder, row_set, template)
    [encoder.encode(row_set, template), encoder.encode_each(row_set, template)]
  end

  def stressed
    GC.stress = true
    yield
  ensure
    GC.stress = false
  end

  def compacting
    GC.auto_compact = true
    yield
  ensure
    GC.auto_compact = false
  end

  def resident_kb = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
end
