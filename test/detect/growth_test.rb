# frozen_string_literal: true

require_relative "active_record_world"
require "castellan/serve"
require "rack/mock_request"

class DetectGrowthTest < Minitest::Test
  World = ActiveRecordWorld

  def teardown
    World::Tag.where(name: "grown").delete_all
  end

  def test_the_block_runs_with_n_to_warm_up_and_with_n_two_n_and_four_n
    seen = []
    Castellan::Detect.growth(scale: tags) { (seen << World::Tag.where(name: "grown").count).last.to_s }
    assert_equal [2, 2, 4, 8], seen
  end

  def test_a_block_with_an_argument_receives_the_number_of_records
    seen = []
    growth = Castellan::Detect.growth(by: 3) { |count| World::Tag.limit((seen << count).last).to_a }
    assert_equal [3, 3, 6, 12], seen
    assert_predicate growth, :constant?
  end

  def test_growth_measures_the_cost_of_an_additional_record
    growth = Castellan::Detect.growth(scale: tags, by: 20) { World::Tag.all.to_a.sum { |tag| World::Tag.find(tag.id).id }.to_s * 10 }
    assert_in_delta 1.0, growth.slopes.values.first
    costs = growth.costs
    assert_operator costs[:objects], :>, 20
    assert_kind_of Numeric, costs[:ns] # which a busy machine may make anything
    assert_match(/each additional record costs (?:\d+\.\d{3} ms|no time .*?), \d+ objects, \d+ bytes of the result\z/, growth.to_s)
  end

  def test_a_growing_shape_names_the_line_that_sends_most_of_it
    growth = Castellan::Detect.growth(scale: tags) do
      [World::Tag.find(World::Tag.ids.first)] +
        World::Tag.ids.map { |id| World::Tag.find(id) }
    end
    assert_includes growth.to_s, "1.0 more queries per record at test/detect/growth_test.rb:#{__LINE__ - 2}: select tags.* "
  end

  def test_the_size_of_a_list_is_not_in_bytes
    growth = Castellan::Detect.growth(scale: tags) { World::Tag.all.to_a }
    assert_predicate growth, :constant?
    assert_nil growth.costs[:bytes]
    assert_match(/ objects\z/, growth.to_s)
  end

  def test_the_size_of_a_hash_is_that_of_its_values
    growth = Castellan::Detect.growth(scale: tags) { { data: World::Tag.all.map { |tag| { id: tag.id } }, meta: { version: 1 } } }
    assert_predicate growth, :constant?, growth.to_s
    limited = Castellan::Detect.growth(scale: tags) { { data: World::Tag.limit(2).map { |tag| [tag.id, tag.name] }, meta: nil } }
    assert_equal "the result had the same size (8) every time: the added records were not part of the work", limited.to_s
  end

  def test_the_size_of_a_list_includes_nested_elements
    lists = [->(count) { Array.new(count) { [] } }, ->(count) { Array.new(count) { { posts: [] } } },
             ->(count) { { tags: World::User.limit(count).load } }, ->(count) { [(1..count).to_set] },
             ->(count) { Array.new(count, 1).then { |list| list << list } }]
    lists.each { |list| assert_predicate Castellan::Detect.growth(by: 1, &list), :constant? }
    same = [->(_count) { [[], "a", 1, nil] }, ->(count) { { text: "a" * count, number: 2**(64 * count), name: :"#{"a" * count}" } }]
    same.each { |list| refute_predicate Castellan::Detect.growth(by: 1, &list), :constant? }
  end

  def test_a_document_of_a_resource_is_rendered_and_grows
    resource = Class.new(Castellan::Resource) { model(World::Tag) && type(:tags) && attributes(:name) }
    app = Castellan.app { resource(resource) }
    documents = [-> { resource.document(World::Tag.all) }, -> { resource.document(World::Tag.all).to_json },
                 -> { app.call(Rack::MockRequest.env_for("/tags")) }]
    documents.each do |document|
      growth = Castellan::Detect.growth(scale: tags, by: 3) { document.call }
      assert_predicate growth, :constant?, growth.to_s
      assert_operator growth.costs[:bytes], :>, 10
    end
  end

  def test_one_query_per_record_grows_by_exactly_one
    growth = Castellan::Detect.growth(scale: tags, by: 3) { World::Tag.ids.map { |id| World::Tag.find(id) } }
    assert_equal [1.0], growth.slopes.values
  end

  def test_a_decreasing_time_is_no_cost
    runs = [4, 2, 1].map.with_index(1) do |ns, added|
      Castellan::Detect::Growth::Run.new(added: added, groups: {}, size: added, text: true, loaded: added, ns: ns, objects: 10 * added)
    end
    text = "the queries are constant; each additional record costs no time that can be measured, 10 objects, 1 bytes of the result"
    assert_equal text, Castellan::Detect::Growth.new(runs).to_s
  end

  def test_the_size_of_a_rack_response_is_that_of_its_body
    response = ->(records) { [200, {}, [records.map(&:id).join(",")]] }
    assert_predicate Castellan::Detect.growth(scale: tags) { response.call(World::Tag.all) }, :constant?
    refute_predicate Castellan::Detect.growth(scale: tags) { response.call(World::User.all) }, :constant?
  end

  def test_without_a_size_the_loaded_records_must_grow
    assert_predicate Castellan::Detect.growth(scale: tags) { World::Tag.all.to_a && nil }, :constant?
    growth = Castellan::Detect.growth(scale: tags) { World::User.all.to_a && nil }
    refute_predicate growth, :constant?
    assert_equal "the block returned nothing that has a size (return what grows, such as response.body), " \
                 "and loaded 5 records every time: the added records were not part of the work",
                 growth.to_s
  end

  def test_growth_is_measured_even_if_the_result_stays_the_same
    growth = Castellan::Detect.growth(scale: tags) { World::Tag.ids.each { |id| World::Tag.find(id) } && 1 }
    assert_in_delta 1.0, growth.slopes.values.first
  end

  def test_a_missing_scale_or_number_raises
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Detect.growth { World::Tag.count } }
    assert_includes error.message, "pass scale: ->(count)"
    assert_raises(Castellan::ConfigurationError) { Castellan::Detect.growth(by: 0) { |count| count } }
  end

  private

  def tags = ->(count) { count.times { World::Tag.create!(name: "grown") } }
end
