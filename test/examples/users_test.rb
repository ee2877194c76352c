# frozen_string_literal: true

require "test_helper"
require_relative "example_process"
require "sqlite3"

module UsersExampleTests
  include Castellan::ExamplePromises

  FILTERED = %w[1 2].freeze # the ids of the roles Administrator and Manager
  ANSWERS = {} # rubocop:disable Style/MutableConstant -- no test changes what is in them, and one takes up to a second

  def test_the_baseline_runs_about_as_many_queries_as_in_the_story
    warm_up("baseline")
    assert_in_delta 1_139, queries("baseline"), 1_139 * 0.02
  end

  def test_each_corrected_step_runs_fewer_queries_or_as_many
    correct = example.steps.reject { |step| step["told"] || step["with_castellan"] }.map { |step| step["id"] }
    counts = correct.map { |id| warm_up(id) && queries(id) }
    assert_equal counts.sort.reverse, counts, correct.zip(counts).inspect
    assert_equal 7, counts[-2]
    assert_equal 1, counts[-1]
  end

  def test_the_document_has_a_hundred_and_sixty_two_users
    assert_equal 162, users("baseline").size
  end

  def test_some_users_have_two_of_the_roles_and_are_sent_once
    ids = users("baseline").map { |user| user["id"] }
    assert_equal ids.uniq, ids
    assert(users("baseline").any? { |user| (FILTERED - role_ids(user)).empty? })
  end

  def test_the_published_eager_load_narrows_the_roles
    told = users("includes_told")
    assert_equal users("baseline").map { |user| user["id"] }, told.map { |user| user["id"] }
    assert(told.all? { |user| (role_ids(user) - FILTERED).empty? })
    assert(users("includes").any? { |user| (role_ids(user) - FILTERED).any? })
  end

  def test_the_published_last_login_is_the_oldest
    told, correct = %w[last_login_told last_login].map { |id| users(id).map { |user| user.dig("attributes", "last_login_at") } }
    refute_equal correct, told
    told.zip(correct) { |old, new| assert(old.nil? == new.nil? && (old.nil? || old <= new), "#{old} #{new}") }
    assert_includes correct, nil
  end

  def test_the_published_record_cache_is_not_json
    response = example.get(path("record_cache_told"))
    assert_equal "200", response.code
    assert_raises(JSON::ParserError) { JSON.parse(response.body) }
  end

  def test_the_record_cache_sees_a_new_name_of_a_group
    before = example.json(path("record_cache"))
    output, ok = example.ruby('Group.find(1).update!(name: "Renamed")')
    assert ok, output
    refute_equal before, example.json(path("record_cache"))
    assert_equal example.json(path("jsonapi_serializer")), example.json(path("record_cache"))
  end

  def test_show_sends_the_same_before_and_after_every_step
    example.story["unchanged"].each do |show|
      before = example.get(show).body
      example.steps.reject { |step| step["with_castellan"] }.each do |step|
        example.get(step["get"])
        assert_equal before, example.get(show).body, step["id"]
      end
    end
  end

  def test_show_equals_the_baseline
    shown = example.json("/users/1")["data"]
    assert_equal users("baseline").find { |user| user["id"] == "1" }, shown
    assert_equal %w[employee assignments direct_roles roles group_assignments groups], shown["relationships"].keys
  end

  def test_without_a_known_token_nothing_is_sent
    [{}, { "Authorization" => "Bearer nobody" }, { "Authorization" => "Bearer " }].each do |headers|
      ["/users/1", path("baseline"), path("record_cache")].each do |path|
        response = example.get(path, headers)
        assert_equal "401", response.code, path
        assert_equal "401", JSON.parse(response.body)["errors"][0]["status"]
        assert_match(/\ABearer /, response["WWW-Authenticate"])
      end
    end
  end

  def test_unknown_roles_and_users_find_nothing
    %w[baseline includes index_serializer last_login jsonapi_serializer record_cache].each do |id|
      assert_empty example.json("/users/#{id}?role=Nobody")["data"], id
    end
    assert_equal "404", example.get("/users/999999").code
  end

  private

  def path(id) = example.step(id)["get"]
  def warm_up(id) = example.get(path(id))
  def queries(id) = example.queries { assert_equal "200", example.get(path(id)).code }
  def users(id) = ANSWERS[[example, id]] ||= example.json(path(id))["data"]
  def role_ids(user) = user["relationships"]["roles"]["data"].map { |role| role["id"] }
end

class UsersExampleOnSqliteTest < Minitest::Test
  include UsersExampleTests
  include Castellan::ExampleProcessPromises

  URL = Castellan::ExampleProcess.sqlite_url

  def test_the_number_of_users_can_be_chosen
    { { "USERS" => "1000" } => 1_000, { "MULTIPLIER" => "2" } => 324 }.each do |size, count|
      url = Castellan::ExampleProcess.sqlite_url
      output, ok = Castellan::ExampleProcess.new("users", { "DATABASE_URL" => url }.merge(size)).setup
      assert ok, output
      database = SQLite3::Database.new(url.delete_prefix("sqlite3:"))
      assert_equal [[count]], database.execute("SELECT COUNT(DISTINCT user_id) FROM assignments WHERE role_id IN (1, 2)")
      database.close
    end
  end

  def test_setup_does_not_change_foreign_tables
    url = Castellan::ExampleProcess.sqlite_url
    database = SQLite3::Database.new(url.delete_prefix("sqlite3:"))
    database.execute("CREATE TABLE users (theirs text)")
    output, ok = Castellan::ExampleProcess.new("users", "DATABASE_URL" => url).setup
    refute ok
    assert_includes output, "already has the table users"
    assert_equal [["users"]], database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    database.close
  end

  def test_setup_without_a_database_names_the_fix
    url = "postgres://nobody@127.0.0.1:#{free_port}/missing"
    output, ok = Castellan::ExampleProcess.new("users", "DATABASE_URL" => url).setup
    refute ok
    assert_includes output, "unset DATABASE_URL to use SQLite"
  end

  private

  def example = Castellan::ExampleProcess.started("users", URL)
end

class UsersExampleOnPostgresTest < Minitest::Test
  include UsersExampleTests

  def setup
    needs :postgres
  end

  private

  def example
    @@url ||= Castellan::TestServers.postgres_url # rubocop:disable Style/ClassVars
    Castellan::ExampleProcess.started("users", @@url)
  end
end
