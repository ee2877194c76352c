# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "active_record"
require "castellan/detect"

class DetectTallyTest < Minitest::Test
  Tally = Castellan::Detect::Tally
  READS = ["SELECT * FROM users WHERE id = ?", "SELECT * FROM posts WHERE posts.user_id = ? AND title = ?", "SELECT 1 FROM users",
           "SELECT * FROM users WHERE id IN (?, ?)", "SELECT users.id AS t0_r0 FROM users JOIN posts ON true",
           "SELECT * FROM users WHERE id > ? ORDER BY id LIMIT ?", "/* a */ select * from users where id = ?"].freeze
  WRITES = ["UPDATE users SET name = ? WHERE id = ?", "INSERT INTO posts (title) VALUES (?)", "DELETE FROM users WHERE id = ?",
            "INSERT INTO posts (title) VALUES (?), (?)", "DELETE FROM users WHERE user_id IN (?, ?)"].freeze
  OTHERS = ["BEGIN", "PRAGMA table_info(x)", "SELECT nextval('x')"].freeze
  MODELS = [String, Integer, Class.new].freeze

  def test_a_statement_that_succeeds_after_a_failure_counts_once
    tallies.each do |tally|
      refused = lambda do |text, number|
        tally.failed
        here(tally, text, number, 600_000_000, false, [number])
      end
      3.times { |number| refused.call(WRITES[0], number) }
      assert_equal [3], tally.groups.map(&:count)
      2.times { |number| here(tally, WRITES[0], 9, 1, false, [number]) }
      assert_equal [4], tally.groups.map(&:count)
      2.times { |number| refused.call(READS[2], number) && here(tally, READS[2], 9, 1, false, [1]) }
      assert_equal [4, 2], tally.groups.map(&:count)
      assert_equal [[:slow_query, 3], [:slow_query, 2]], tally.single_findings.map { |finding| [finding.kind, finding.count] }
    end
  end

  def test_a_failed_write_counts_as_a_write
    tallies.each do |tally|
      2.times do |number|
        here(tally, READS[0], number, 1, false, [1])
        tally.failed
        here(tally, WRITES[0], number, 1, false, [1])
      end
      here(tally, WRITES[0], 3, 1, false, [1])
      here(tally, READS[0], 4, 1, false, [1])
      assert_equal [3, 0], [tally.groups.first.count, tally.groups.first.again]
    end
  end

  def test_texts_and_names_are_kept_up_to_a_number
    most = Tally::MOST_TEXTS
    [->(number) { ["SELECT 1 FROM users", "name #{number}"] }, ->(number) { ["SELECT #{number} FROM users", nil] }].each do |text|
      tally = Tally.new
      (most + 9).times { |number| tally.query(*text.call(number), number, 1, false, 1, [number]) }
      assert_equal [[most + 9], nil], [tally.groups.map(&:count), tally.failure]
      assert_operator tally.instance_variable_get(:@texts).size, :<=, most
    end
  end

  def test_statements_of_any_bytes_are_counted
    tallies.each do |tally|
      2.times { |number| here(tally, "SELECT * FROM users WHERE name = 'a\xFF' AND id > #{number}", number, 1, false, []) }
      here(tally, "INSERT INTO users (name) VALUES ('a\xFF')", 3, 1, false, [])
      here(tally, nil, 4, 1, false, [])
      assert_nil tally.failure
      assert_equal [2, 1], tally.groups.first(2).map(&:count)
    end
  end

  def test_an_internal_error_stops_counting_and_is_not_raised
    tally = Tally.new
    Castellan::Fingerprint.stub(:of, ->(*) { raise "a bug" }) { here(tally, "SELECT a_bug FROM users", 0, 1, false, []) }
    assert_equal "a bug", tally.failure.message
    here(tally, READS[0], 0, 1, false, [1])
    assert_empty tally.groups
  end

  def test_inserts_of_several_rows_differ_from_written_values
    shape = Castellan::Detect::Shape.new("insert into posts (title) values (?)")
    texts = { "INSERT INTO posts (title) VALUES (1), (2)" => true, "INSERT INTO posts (title) VALUES (1)" => false,
              "INSERT INTO posts (a), (b) SELECT 1" => false, "INSERT INTO posts (title) VALUES ('#{"values " * 20_000}')" => false }
    assert_equal texts.values, texts.keys.map { |text| Tally.bulk?(shape, text) }
  end

  def test_a_single_statement_is_no_finding
    known = Array.new(400) { |seed| tallies.first.tap { |tally| tell(tally, Random.new(seed), 1 + (seed % 7)) } }.select(&:no_repeats?)
    assert_operator known.size, :>, 50
    known.each { |tally| assert_empty findings(tally) }
  end

  def test_repeated_written_or_slow_statements_are_not_single
    assert_predicate Tally.new.tap { |tally| READS[0, 2].each { |sql| here(tally, sql, 0, 1, false, [1]) } }, :no_repeats?
    refute_predicate Tally.new.tap { |tally| 2.times { here(tally, READS[0], 0, 1, false, [1]) } }, :no_repeats?
    refute_predicate Tally.new.tap { |tally| here(tally, WRITES[0], 0, 1, false, [1]) }, :no_repeats?
    refute_predicate Tally.new.tap { |tally| here(tally, READS[0], 0, 600_000_000, false, [1]) }, :no_repeats?
    refute_predicate Tally.new.tap { |tally| here(tally.strand, READS[0], 0, 1, false, [1]) }, :no_repeats?
    Castellan::Fingerprint.stub(:of, ->(*) { raise "a bug" }) do
      refute_predicate Tally.new.tap { |tally| here(tally, "SELECT not_once", 0, 1, false, []) }, :no_repeats?
    end
  end

  def test_one_slow_line_of_several_threads_is_one_finding_with_the_time_of_all
    tally = Tally.new
    [tally, tally.strand, tally.strand].each { |one| here(one, READS[0], 0, 600_000_000, false, [1]) }
    2.times do
      assert_equal [[3, 1_800_000_000]], tally.single_findings.map { |finding| [finding.count, finding.total_ns] }
    end
  end

  def test_more_slow_statements_than_are_kept
    most = Castellan::Detect::Singles::MOST
    tally = Tally.new
    2.times { (most + 5).times { |number| here(tally, "SELECT a#{number} FROM users", 0, 600_000_000, false, [1]) } }
    assert_equal [2] * most, tally.single_findings.map(&:count)
  end

  def test_one_association_that_asks_two_tables_is_not_once
    tally = Tally.new
    tally.enter(MODELS[0], :subject)
    2.times { |number| here(tally, READS[number], 0, 1, false, [1]) }
    refute_predicate tally, :no_repeats?
  end

  def test_a_text_that_was_forgotten_belongs_to_its_group
    tallies.each do |tally|
      6_000.times do |number|
        tally.query("SELECT #{number % 3_000} FROM users WHERE id = ?", nil, 0, 1, false, 1, [number])
      end
      assert_equal [[6_000, 32]], tally.groups.map { |group| [group.count, group.different] }
    end
  end

  def test_the_same_values_are_known_again_whatever_they_are
    values = [[1], ["1"], [1.0], [nil], [], [1, "1"], ["1", 1], [:one], [2**70], [[1]], ["a\xFF"], [1, 1.0], (1..8).to_a, (1..9).to_a]
    tallies.each do |tally|
      2.times { values.each { |binds| here(tally, READS[0], 0, 1, false, Marshal.load(Marshal.dump(binds))) } }
      assert_equal [values.size, values.size], tally.groups.map { |group| [group.different, group.again] }.first
    end
  end

  def test_more_shapes_than_are_kept
    tallies.each do |tally|
      600.times { |number| tally.query("SELECT * FROM t#{number}", nil, 0, 1, false, 1) }
      assert_equal Tally::MOST_SHAPES, tally.groups.size
    end
  end

  def test_more_loads_than_are_kept
    tallies.each do |tally|
      600.times { |number| tally.loaded("User", 2, number) }
      tally.loaded("Post", 2, 0)
      assert_equal [Tally::MOST_LOADS + 1, %w[User Post]], [tally.loads.size, tally.loads.select { |load| load.site&.zero? }.map(&:model)]
    end
  end

  def test_a_notification_within_a_notification_counts
    tallies.each do |tally|
      value = Object.new
      value.define_singleton_method(:hash) { tally.query("SELECT * FROM posts", nil, 0, 1, false, 1).then { 7 } }
      3.times { tally.query("SELECT * FROM users WHERE id = ?", nil, 0, 1, false, 1, [value]) }
      assert_equal({ "users" => 3, "posts" => 3 }, tally.groups.to_h { |group| [group.shape.table, group.count] })
    end
  end

  # The room for values is full when the statement that was begun first is compared.
  def test_a_nested_notification_may_exceed_the_kept_values
    tallies.each do |tally|
      value = Object.new
      value.define_singleton_method(:hash) { 40.times { |id| tally.query(READS[0], nil, 0, 1, false, 1, [id]) }.hash }
      tally.query(READS[0], nil, 0, 1, false, 1, [value])
      assert_equal [41, 0], tally.groups.map { |group| [group.count, group.again] }.first
      assert_equal 32, tally.groups.first.different
    end
  end

  def test_odd_statements_and_names
    tallies.each do |tally|
      ["", "SELECT '", "\xff\xfe SELECT", :symbol].each { |sql| tally.query(sql, :name, 0, 1, nil, nil, []) }
      tally.leave
      tally.loaded(nil, 2, nil)
      assert_equal [1, 1], tally.groups.map(&:count).minmax
      assert_equal [["", nil]], tally.loads.map { |load| [load.model, load.site] }
    end
  end

  def test_values_of_every_kind_are_known_where_statements_repeat
    tallies.each do |tally|
      20.times { |number| here(tally, READS[0], 0, 1, false, [[number % 3, 1.5, "x", nil, :one][number % 5]]) }
      assert_equal [7, 13], tally.groups.map { |group| [group.different, group.again] }.first
    end
  end

  def test_internal_errors_for_repeated_statements_are_not_raised
    tally = Tally.new
    value = Object.new
    def value.hash = raise("a bug")
    3.times { |number| here(tally, READS[0], 0, 1, false, [number]) }
    here(tally, READS[0], 0, 1, false, [value])
    here(tally, READS[0], 0, 1, false, [3])
    assert_equal ["a bug", 4], [tally.failure.message, tally.groups.first.count]
  end

  def test_garbage_collected_and_moved_meanwhile
    tally = Tally.new
    12.times do |number|
      tally.enter(String, :"a#{number % 3}")
      tally.query(+"SELECT * FROM users WHERE id = ? AND name = ?", +"User Load", number, 1, false, 1, [number, +"x"])
      tally.loaded(+"User", 2, number)
      GC.compact if GC.respond_to?(:compact)
      tally.leave
    end
    assert_equal [4, 4, 4], tally.groups.map(&:count)
  end

  private

  def tallies = [Tally.new]

  # A random piece of work, the same for the same seed.
  def tell(tally, random, events)
    events.times do |number|
      tally.failed if random.rand(20).zero?
      case random.rand(12)
      when 0 then tally.enter(MODELS.sample(random: random), %i[posts user].sample(random: random))
      when 1 then tally.leave
      when 2, 3 then tally.loaded(%w[User Post].sample(random: random), random.rand(2..9), random.rand(3))
      when 4 then statement(tally, [*WRITES, *OTHERS].sample(random: random), random, number)
      else statement(tally, READS.sample(random: random), random, number)
      end
    end
  end

  def statement(tally, sql, random, number)
    binds = [nil, [], [random.rand(4), "x"], [random.rand(40)]].sample(random: random)
    duration = random.rand(20).zero? ? 600_000_000 : random.rand(9_999)
    send(%i[here there].sample(random: random), tally, sql, number * 1_000, duration, random.rand(9).zero?, binds)
  end

  def here(tally, sql, started, duration, cached, binds)
    tally.query(sql, "User Load", started, duration, cached, 1, binds)
  end

  def there(tally, sql, started, duration, cached, binds)
    tally.query(sql, nil, started, duration, cached, 1, binds)
  end

  def findings(tally) = Castellan::Detect::Verdict.new(tally, repeats: 2, min_ns: 0).findings.map { |finding| finding.to_h.except(:stack) }
end
