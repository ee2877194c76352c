# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require "sequel"
require "castellan"

# A record that an include reaches at several places is written once, with the linkage of every included record.
class LazyLinkageTest < Minitest::Test
  DATABASE = Sequel.sqlite
  DATABASE.create_table(:people) {
    primary_key :id
    Integer :mentor_id
  }
  DATABASE[:people].multi_insert([{ mentor_id: nil }, { mentor_id: 1 }, { mentor_id: 2 }])

  class Person < Sequel::Model(DATABASE[:people])
    many_to_one :mentor, class: self
    one_to_many :students, class: self, key: :mentor_id
  end

  class PersonResource < Castellan::Resource
    model Person
    belongs_to :mentor, lazy: true, resource: "PersonResource"
    has_many :students, lazy: true, resource: "PersonResource"
  end

  def test_a_record_at_two_places_has_the_linkage_of_both
    app = Castellan.app { resource PersonResource }
    document = JSON.parse(Rack::MockRequest.new(app).get("/people/3?include=mentor.mentor.students").body)
    assert_equal %w[1 2], document["included"].map { |one| one["id"] }.sort
    assert_full_linkage document
    written = document["included"].to_h { |one| [one["id"], one["relationships"].transform_values { |member| member["data"] }] }
    assert_equal [nil, %w[2]], [written["1"]["mentor"], ids(written["1"]["students"])]
    assert_equal ["1", %w[3]], [written["2"]["mentor"]["id"], ids(written["2"]["students"])]
  end

  def test_a_primary_record_has_the_linkage_of_what_is_included_by_way_of_it
    document = JSON.parse(PersonResource.render(Person.where(id: [1, 3]), include: { students: :students, mentor: :students }))
    assert_full_linkage document
    written = document["data"].to_h { |one| [one["id"], one["relationships"].keys.sort] }
    assert_equal({ "1" => %w[mentor students], "3" => %w[mentor students] }, written)
  end

  def test_what_is_not_included_anywhere_is_not_read
    refute_includes PersonResource.render(Person.where(id: 1)), "relationships"
  end

  private

  def ids(linkage) = linkage.map { |one| one["id"] }

  def assert_full_linkage(document)
    all = [document["data"], document["included"]].flatten
    linked = all.flat_map { |one| one["relationships"].to_h.values.flat_map { |member| [member["data"]].flatten.compact } }
    assert_empty document["included"].map { |one| one["id"] } - linked.map { |one| one["id"] }
  end
end
