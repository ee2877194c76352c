# frozen_string_literal: true

require "test_helper"
require_relative "random_documents"

# Both encoders write unusual rows, links and times the same.
class UnusualRowsTest < Minitest::Test
  include Castellan::Drafts

  Ruby = Castellan::Serialize::RubyEncoder

  def test_links_may_be_unordered_and_dangling
    pairs = [[2, 7], [1, 8], [2, 8], [nil, 7], [1, nil], [3, 9], [1, 7]]
    { [1, 2, 4] => pairs, %w[1 2 4] => pairs, [1, "2", 4] => pairs, [1, 2, 4].freeze => pairs.map { |pair| pair.map { |id| id&.to_s } } }
      .each do |ids, links|
      body = encode(users(ids, Pairs.new(links, 0, 1))).body
      assert_equal [%w[8 7], %w[7 8], []], JSON.parse(body)["data"].map { |user| linked(user) }, ids.inspect
      assert_equal %w[8 7], JSON.parse(body)["included"].map { |role| role["id"] }
    end
  end

  def test_a_to_one_relationship_takes_the_first_link
    root = users([1, 2, 3], Pairs.new([[1, 8], [1, 7], [2, 9]], 0, 1), many: false)
    found = JSON.parse(encode(root).body)
    assert_equal([{ "type" => "roles", "id" => "8" }, { "type" => "roles", "id" => "9" }, nil],
                 found["data"].map { |user| user.dig("relationships", "roles", "data") })
    assert_equal(%w[8], found["included"].map { |role| role["id"] })
  end

  def test_halves_of_a_character_in_two_rows_raise
    root = draft("users", { id: :integer, name: :text }, [[1, "fine"], [2, "\xC3"], [3, "\xA9"]])
    error = assert_raises(Castellan::EncodingError) { encode(root) }
    assert_includes error.message, 'users "2", member "name"'
  end

  def test_texts_of_several_encodings_in_one_column
    names = ["é", "é".encode("ISO-8859-1"), "\xC3\xA9".b, "a\"b", "plain".encode("US-ASCII"), nil, "x".encode("UTF-16LE")]
    root = draft("users", { id: :integer, name: :text }, names.each_with_index.map { |name, index| [index, name] })
    assert_equal ["é", "é", "é", "a\"b", "plain", nil, "x"], names_of(root)
    assert_equal(%w[é a], names_of(draft("users", { id: :text, name: :text }, [%w[ü é], %w[b a]])))
    assert_equal(["é", "\u20ac"], names_of(draft("users", { id: :text, name: :text }, [["ü", "é".b], ["b", "\u20ac"]])))
  end

  def test_times_of_different_formats_in_one_column
    { ["2024-01-31 10:00:00.123456", "2024-12-30 23:59:59", nil, "2024-02-28 00:00:00.5678"] =>
        ["2024-01-31T10:00:00.123Z", "2024-12-30T23:59:59.000Z", nil, "2024-02-28T00:00:00.567Z"],
      ["2024-02-29 10:00:00", "2024-01-01 10:00:00.1", "2024-01-01T10:00:00", "2024-01-01 10:00:00+02", Time.utc(2024)] =>
        %w[2024-02-29T10:00:00.000Z 2024-01-01T10:00:00.100Z 2024-01-01T10:00:00.000Z 2024-01-01T08:00:00.000Z 2024-01-01T00:00:00.000Z],
      [nil] => [nil] }.each { |times, written| assert_equal written, seen(times) }
  end

  def test_an_invalid_date_is_named_with_its_row
    ["2023-02-29 10:00:00", "2024-02-30 10:00:00", "2024-04-31 10:00:00", "2024-00-10 10:00:00", "2024-01-00 10:00:00",
     "2024-01-32 10:00:00", "2024-01-01 24:00:00", "2024-01-01 10:60:00", "2024-01-01 10:00:00.\n",
     "2024-01-01 10:00:00\n2024-01-01 10:00:00"].each do |time|
      error = assert_raises(Castellan::EncodingError, time) { seen(["2024-01-31 10:00:00", time]) }
      assert_includes error.message, 'users "1", member "seen"'
    end
  end

  def test_null_among_other_values
    rows = [["1", "a", 1, true], ["2", nil, nil, nil], ["3", "\u2028<", 1 << 70, 0]]
    root = draft("users", { id: :text, name: :text, age: :integer, active: :boolean }, rows)
    found = JSON.parse(encode(root).body)["data"].map { |user| user["attributes"].values }
    assert_equal([["a", 1, true], [nil, nil, nil], ["\u2028<", 1 << 70, false]], found)
  end

  def test_missing_nested_records_are_left_out
    roles = draft("roles", { id: :integer, title: :text }, [[7, "chief"]])
    edges = { many: [[1, 9], [2, 7], [1, 7], [2, 7]], one: [[1, 9], [1, 7], [2, 7]] }.map do |name, pairs|
      edge(name, Pairs.new(pairs, 0, 1), many: name == :many, type: "roles", to: roles)
    end
    root = draft("users", { id: :integer }, [[1], [2], [3]], edges: edges)
    role = { "id" => 7, "title" => "chief" }
    expected = [{ "id" => 1, "many" => [role], "one" => nil }, { "id" => 2, "many" => [role, role], "one" => role },
                { "id" => 3, "many" => [], "one" => nil }]
    assert_equal expected, JSON.parse(encode(root, format: :nested).body)
  end

  def test_a_row_without_an_id_raises
    error = assert_raises(Castellan::EncodingError) { encode(draft("users", { id: :text, name: :text }, [["a", "b"], ["", "c"]])) }
    assert_includes error.message, "users"
  end

  private

  def users(ids, links, many: true)
    roles = draft("roles", { id: :integer, title: :text }, [[7, "chief"], [8, "cook"]])
    edges = [edge(:roles, links, many: many, type: "roles", to: roles)]
    draft("users", { id: :integer, name: :text }, ids.map { |id| [id, "name"] }, edges: edges)
  end

  def linked(user) = user.dig("relationships", "roles", "data").map { |link| link["id"] }

  def names_of(root) = JSON.parse(encode(root).body)["data"].map { |user| user.dig("attributes", "name") }

  def seen(times)
    rows = times.each_with_index.map { |time, index| [index, time] }
    JSON.parse(encode(draft("users", { id: :integer, seen: :datetime }, rows)).body)["data"].map { |user| user.dig("attributes", "seen") }
  end

  # Asserts that both encoders return the same bytes or raise the same error.
  def encode(root, format: :json_api)
    plan, row_set = build(root, format: format)
    template = Castellan::Serialize::Template.new(plan)
    outputs = [Castellan::Serialize.encoder, Ruby].uniq.map do |encoder|
      encoder.encode(row_set, template)
    rescue Castellan::EncodingError => error
      error
    end
    assert_equal(*outputs.map { |output| output.is_a?(Exception) ? output.message : output.body }.then { |all| [all.first, all.last] })
    outputs.last.is_a?(Exception) ? raise(outputs.last) : outputs.last
  end
end
