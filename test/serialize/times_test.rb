# frozen_string_literal: true

require "test_helper"

# Both encoders write Ruby's times the same, for each year with four digits in ISO 8601.
class TimesTest < Minitest::Test
  class EventResource < Castellan::Resource
    type "events"
    attributes :at
  end

  EDGES = [Time.utc(1, 1, 1), Time.utc(9999, 12, 31, 23, 59, 59.9999999r), Time.utc(1969, 12, 31, 23, 59, 59.9999r), Time.utc(2000, 2, 29),
           Time.utc(1900, 3, 1), Time.utc(2100, 2, 28, 23, 59, 59), Time.at(0.5r, in: "+05:30"), Time.at(-0.0001r)].freeze

  def test_both_encoders_write_ruby_times_the_same
    skip "the extension is not built" unless Castellan::Serialize.native?
    random = Random.new(20_240_131)
    times = EDGES + Array.new(3_000) { Time.at(random.rand(-62_135_596_800..253_402_300_799), random.rand(1_000_000_000), :nsec) }
    assert_equal(times.map { |time| time.getutc.strftime("%Y-%m-%dT%H:%M:%S.%LZ") }, written(Castellan::Serialize::NativeEncoder, times))
    assert_equal written(Castellan::Serialize::RubyEncoder, times), written(Castellan::Serialize::NativeEncoder, times)
  end

  private

  def written(encoder, times)
    plan = EventResource.document([]).rendering.plan
    rows = times.each_with_index.map { |time, index| [index, time] }
    table = Castellan::Plan::RowSet::Table.new(node: plan.root, rows: rows, coders: %i[integer datetime], links: [], computed: {})
    body = encoder.encode(Castellan::Plan::RowSet.new([table]), Castellan::Serialize::Template.new(plan)).body
    JSON.parse(body)["data"].map { |event| event["attributes"]["at"] }
  end
end
