# frozen_string_literal: true

require "test_helper"
require "objspace"

class FingerprintTest < Minitest::Test
  def test_literals_become_question_marks
    assert_shape "select users.* from users where users.id = ? and name = ? limit ?",
                 %q(SELECT "users".* FROM "users" WHERE "users"."id" = 7 AND name = 'it''s' LIMIT 1)
  end

  def test_letter_case_space_and_quotes_of_names_do_not_matter
    assert_equal of("select `a`.`b` from `a`"), of(%(SELECT\n  "A"."B"  FROM "a";))
  end

  def test_comments_and_query_tags_are_left_out
    assert_equal of("SELECT 1 FROM t"), of("/*app:x*/ SELECT 1 -- ids '1'\n FROM t /*action='index'*/")
  end

  def test_a_bind_with_its_cast_is_a_bind
    assert_equal of("SELECT a FROM t WHERE id = 1 LIMIT 1"), of("SELECT a FROM t WHERE id = $1::int4 LIMIT $2::int8")
    assert_equal of("SELECT a FROM t WHERE id = ANY($1)"), of("SELECT a FROM t WHERE id = ANY($1::int4[])")
  end

  def test_lists_of_any_length_are_one_shape
    assert_equal of("SELECT a FROM t WHERE id IN (1)"), of("SELECT a FROM t WHERE id IN (1, 2,3 , 'x')")
    assert_equal of("SELECT a FROM t WHERE (a, b) IN ((1, 2))"), of("SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4))")
    assert_equal of("INSERT INTO t (a, b) VALUES (1, 2)"), of("INSERT INTO t (a, b) VALUES (1, 2), (3, lower('x'))")
    assert_equal of("SELECT a FROM t WHERE id = ANY(ARRAY[1])"), of("SELECT a FROM t WHERE id = ANY(ARRAY[1,2])")
  end

  def test_a_list_in_brackets_leaves_the_brackets_around_it
    assert_shape "select a from t where (id in (?)) and b = ?", "SELECT a FROM t WHERE (id IN (1, 2)) AND b = 3"
  end

  def test_numbers_of_every_form_are_literals_and_digits_in_names_are_not
    assert_shape "select t1.c2 from t1 where a = ? and b = ? and c = ? and d = ? and e = ?",
                 "SELECT t1.c2 FROM t1 WHERE a = -5 AND b = 1.5e10 AND c = .5 AND d = 0xFF AND e = $12"
  end

  def test_truth_values_are_literals_and_null_is_a_shape
    assert_equal of("SELECT a FROM t WHERE b = TRUE"), of("SELECT a FROM t WHERE b = FALSE")
    refute_equal of("SELECT a FROM t WHERE b IS NULL"), of("SELECT a FROM t WHERE b IS NOT NULL")
  end

  def test_dollar_quotes_and_prefixed_strings_are_literals
    assert_shape "select ?, ?, ?, ?", "SELECT $$secret$$, $tag$it's $$ secret$tag$, E'secret', x'00ff'"
  end

  def test_casts_and_json_operators_stay
    assert_shape "select a::date from t where b ->> ? = ? and c = ?::uuid", "SELECT a::date FROM t WHERE b ->> 'k' = 'v' AND c = 'x'::uuid"
  end

  def test_no_literal_survives_a_broken_text
    ["SELECT 'secret", "SELECT 1 /* secret", "SELECT $$secret", %q(SELECT * FROM t WHERE a = 'O\'Neil secret' AND b = 'x'),
     "SELECT E'it\\'s secret', 'more'"].each { |sql| refute_includes of(sql), "secret" }
  end

  def test_invalid_bytes_never_raise
    assert_equal "select ?", of("SELECT '\xff\xfe'")
    assert_equal "select ?", of("SELECT '\xff\xfe'".b)
    assert_match(/\Aunreadable:\h{16}\z/, of("SELECT 1".encode(Encoding::UTF_16LE)))
    assert_match(/\Aunreadable:\h{16}\z/, of("SELECT #{"1, " * 400_000}1"))
  end

  def test_equal_statements_share_one_frozen_fingerprint
    assert_same of("SELECT 1"), of("SELECT 1")
    assert_predicate of("SELECT 1"), :frozen?
  end

  def test_the_cache_is_bounded
    5_000.times { |number| of("SELECT #{number}") }
    assert_operator Castellan::Fingerprint.instance_variable_get(:@texts).size, :<=, Castellan::Fingerprint::KEPT
  end

  def test_a_long_list_takes_time_in_proportion_to_its_length
    short = seconds { of("SELECT a FROM t WHERE id IN (#{(1..2_000).to_a.join(", ")})") }
    long = seconds { of("SELECT a FROM t WHERE id IN (#{(1..40_000).to_a.join(", ")})") }
    assert_operator long, :<, [short, 0.001].max * 200
  end

  def test_numbers_in_the_names_of_aliases_savepoints_and_temporary_tables_do_not_matter
    assert_equal of("SELECT a17.id FROM users AS a17 WHERE a17.id = 1"), of(%(SELECT "a8".id FROM users AS "a8" WHERE "a8".id = 2))
    assert_equal of("SELECT x3.id FROM users x3 JOIN posts p9 ON p9.id = x3.id"),
                 of("SELECT x1.id FROM users x1 JOIN posts p2 ON p2.id = x1.id")
    assert_equal of("SAVEPOINT active_record_1"), of("SAVEPOINT active_record_12")
    assert_equal of("SELECT * FROM tmp_import_17"), of("SELECT * FROM tmp_import_4")
    assert_equal of("FETCH 10 FROM cursor_17"), of("FETCH 10 FROM cursor_18")
    assert_equal of("WITH a7 AS (SELECT 1), b9 AS MATERIALIZED (SELECT 2) SELECT * FROM a7, b9"),
                 of("WITH a8 AS (SELECT 1), b3 AS MATERIALIZED (SELECT 2) SELECT * FROM a8, b3")
    refute_equal of("SELECT * FROM users AS a1, posts AS a2 WHERE a1.id = 1"), of("SELECT * FROM users AS a1, posts AS a2 WHERE a2.id = 1")
    refute_equal of("SELECT line1 FROM t"), of("SELECT line2 FROM t")
    assert_shape "select t0.id as t0_r0, t0.name as t0_r1 from t", "SELECT t0.id AS t0_r0, t0.name AS t0_r1 FROM t"
  end

  def test_random_and_numbered_names_of_one_purpose_are_one_name
    { "SAVEPOINT castellan_%s" => %w[3f2a9c01 9b1c00de], "SELECT a FROM import_%s" => %w[0c175b9c0f1b6a831c39 92eb5ffee6ae2fec3ad7],
      "SELECT a FROM report_%s" => %w[9f86d081_884c_7d65_9a2f_eaa0c55ad015 60303ae2_2b99_8861_bce3_b28f33eec1be],
      "EXECUTE a%s (1)" => %w[1 27], "PREPARE a%s AS SELECT 1" => %w[1 27], "DEALLOCATE a%s" => %w[1 27],
      "DECLARE page_%s CURSOR FOR SELECT 1" => %w[17 9], "CLOSE page_%s" => %w[17 9] }.each do |sql, names|
      assert_equal(*names.map { |name| of(format(sql, name)) })
    end
    [%w[sales_20240131 sales_20240201], %w[of_facades of_decades], %w[line_a1 line_a2]].each do |names|
      refute_equal(*names.map { |name| of("SELECT * FROM #{name}") })
    end
  end

  def test_the_fast_path_equals_the_full_computation
    random = Random.new(7)
    read = Array.new(20_000) { statement(random) }.count { |sql| alike?(sql) }
    assert_operator read, :>, 3_000
  end

  # An IN list of 5,000 ids has 30 kB and is another text in each request.
  def test_long_statements_do_not_stay_in_memory
    held = held_bytes
    40.times do |n|
      ids = Array.new(5_000 + n) { |id| 100_000 + (7 * n) + id }.join(", ")
      assert_shape "select * from users where id in (?)", "SELECT * FROM users WHERE id IN (#{ids})"
    end
    assert_operator held_bytes - held, :<, 500_000
  end

  private

  # Parts of statements, valid and broken.
  PIECES = <<~'SQL'.split.push(" ", "\n", "  ", "# ", "$a$é$a$", "\0", %("A  B"), "?, ?", "(1, 2), (3, 4)", "(-1, + 2)", "'a b'").freeze
    ' '' " ` [ ] ( ) ( ) , ; : :: $ $$ $tag$ $TAG$ ? ?1 $1 - -- + /* */ / # . .5 5 5.5 1e5 1.e 0x1f 0xg 7e-3 e x b n _utf8 E' x' N'
    a b1 users t0_r0 in IN any ANY( array[ ARRAY[ values VALUES between and limit true FALSE truex select from where = < > <> :name ::
    é 'é' "é" \ \' null _ __a @ % | in( in( values( values( ?,? (1,2) (1,f(2)),(3) ((1,2),(3,4)) =-5 -5
  SQL
  private_constant :PIECES

  def statement(random)
    text = Array.new(random.rand(1..14)) { PIECES[random.rand(PIECES.size)] }.join(random.rand(3).zero? ? "" : " ")
    random.rand(10).zero? ? text.b : text
  end

  # @return [Boolean] whether the fast path handled it
  def alike?(sql)
    plain = plain(sql)
    return false if plain.nil? || sql.match?(/_\w*\s*'/) # a character set before a string

    assert_equal(*[sql, plain].map { |text| Castellan::Fingerprint.send(:compute, text) }, sql.inspect)
    true
  end

  def plain(sql)
    Castellan::Fingerprint.send(:plain, sql)
  rescue ArgumentError
    nil # as in Fingerprint
  end

  def of(sql) = Castellan::Fingerprint.of(sql)

  # @return [Integer] bytes of all strings
  def held_bytes
    GC.start
    ObjectSpace.memsize_of_all(String)
  end

  def assert_shape(expected, sql) = assert_equal(expected, of(sql))

  # CPU time of this thread, the minimum of several runs, so that other processes do not matter.
  def seconds
    Array.new(3) do
      started = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      yield
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - started
    end.min
  end
end
