# frozen_string_literal: true

# The contract of exact versions on each ORM and database. The including class defines `source`, `run_sql` (on
# the ORM's connection), `other` (the driver's connection, as another program has it; responds to `run`), and
# `transaction`.
module ExactVersionsContract
  Dependency = Castellan::Versions::Dependency

  def setup
    super
    connect
    %w[users roles].each { |table| run_sql("CREATE TABLE #{table} (id integer PRIMARY KEY, name text)") }
    @versions = Castellan::Versions::ExactVersions.new(source, log: ->(line) { (@lines ||= []) << line })
    @versions.install(%w[users roles])
  end

  def test_the_token_stays_while_nothing_changes
    token = users
    assert_kind_of String, token
    5.times { assert_equal token, users }
    other.run("SELECT * FROM users")
    assert_equal token, users
  end

  def test_inserts_updates_and_deletes_change_it
    assert_changes { run_sql("INSERT INTO users VALUES (1, 'a'), (2, 'b')") }
    assert_changes { run_sql("UPDATE users SET name = 'c' WHERE id = 1") }
    assert_changes { run_sql("UPDATE users SET id = 3 WHERE id = 1") }
    assert_changes { run_sql("DELETE FROM users WHERE id = 2") }
    assert_changes { run_sql("DELETE FROM users") }
  end

  def test_other_programs_change_it
    assert_changes { other.run("INSERT INTO users VALUES (1, 'a')") }
    assert_changes { other.run("UPDATE users SET name = 'b'") }
    assert_changes { other.run("DELETE FROM users") }
  end

  def test_a_token_never_comes_back
    run_sql("INSERT INTO users VALUES (1, 'a')")
    tokens = Array.new(50) { |i| other.run("UPDATE users SET name = 'v#{i % 2}'") && users }
    assert_equal 50, tokens.uniq.size
  end

  def test_another_table_changes_only_documents_that_depend_on_it
    both = current("users", "roles")
    only_users = users
    run_sql("INSERT INTO roles VALUES (1, 'admin')")
    refute_equal both, current("users", "roles")
    assert_equal only_users, users
  end

  def test_a_rollback_restores_the_token
    token = users
    inside = nil
    transaction(rollback: true) do
      run_sql("INSERT INTO users VALUES (1, 'a')")
      inside = users
    end
    assert_equal token, users
    refute_equal token, inside
    assert_changes { run_sql("INSERT INTO users VALUES (1, 'b')") }
    refute_equal inside, users
  end

  def test_others_see_a_new_token_after_the_commit_only
    other.run("BEGIN")
    other.run("INSERT INTO users VALUES (1, 'a')")
    token = users
    assert_equal [], names
    assert_equal token, users
    other.run("COMMIT")
    refute_equal token, users
    assert_equal ["a"], names
  end

  def test_a_table_without_its_trigger_has_no_token
    token = users
    @versions.uninstall(%w[users])
    assert_nil users
    refute @versions.installed?(%w[users])
    assert_nil current("users", "roles")
    assert @versions.installed?(%w[roles])
    run_sql("INSERT INTO users VALUES (1, 'a')")
    @versions.install(%w[users])
    refute_equal token, users
    assert @versions.installed?(%w[users roles])
  end

  def test_a_recreated_table_has_no_token
    run_sql("DROP TABLE users")
    assert_nil users
    run_sql("CREATE TABLE users (id integer PRIMARY KEY, name text)")
    assert_nil users
  end

  def test_a_renamed_table_keeps_its_trigger
    run_sql("ALTER TABLE users RENAME TO people")
    run_sql("CREATE TABLE users (id integer PRIMARY KEY, name text)")
    assert_nil users, "the triggers of the new table are not there"
  end

  def test_a_missing_table_has_no_token
    assert_nil current("nonsense")
    refute @versions.installed?(%w[nonsense])
  end

  def test_installing_again_is_harmless_and_changes_the_token
    assert_changes { @versions.install(%w[users]) }
    assert_changes { run_sql("INSERT INTO users VALUES (1, 'a')") }
  end

  def test_castellan_off_returns_no_token
    with_env("CASTELLAN" => "off") { assert_nil users }
    assert users
  end

  def test_cached_bytes_are_never_older_than_their_key
    run_sql("INSERT INTO users VALUES (1, '0')")
    kept = {}
    stop = false
    writer = Thread.new { 60.times { |i| other.run("UPDATE users SET name = '#{i + 1}'") && Thread.pass } && (stop = true) }
    200.times do
      token = users
      (kept[token] ||= names.first.to_i) if token
      break if stop
    end
    writer.join
    assert_equal 60, kept[users] || names.first.to_i
    assert_equal kept.values.sort, kept.values, "later keys have later bytes"
  end

  private

  # Reads twice more, because a version that was read several times may be repeated without its statement.
  def current(*tables)
    dependencies = tables.map { |table| Dependency.new(table) }
    @versions.current(dependencies).tap { 2.times { @versions.current(dependencies) } }
  end

  def users = current("users")

  def assert_changes
    before = users
    yield
    after = users
    refute_nil after
    refute_equal before, after
  end
end
