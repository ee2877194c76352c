# frozen_string_literal: true

require "test_helper"

class CacheEnvelopeTest < Minitest::Test
  Envelope = Castellan::Cache::Envelope

  def test_a_parsed_envelope_equals_the_dumped_one
    envelope = Envelope.new(body: "{\"é\":}", holes: [[6, "posts/1"], [6, "7\xFF"]])
    loaded = Envelope.load(envelope.dump)
    assert_equal envelope.body, loaded.body
    assert_equal [[6, 6], ["posts/1".b, "7\xFF".b]], [loaded.offsets, loaded.ids]
    assert_predicate loaded, :frozen?
  end

  def test_every_part_but_the_body_is_optional
    loaded = Envelope.load(Envelope.new(body: "").dump)
    assert_equal ["", [], []], [loaded.body, loaded.offsets, loaded.ids]
  end

  def test_anything_else_is_a_miss
    bytes = Envelope.new(body: "body", holes: [[1, "a"], [2, "b"]]).dump
    [nil, "", "x", "{}", bytes[0..-2], "#{bytes}x".b, "CF#{bytes[2..]}".b, bytes.sub("CE\x02".b, "CE\x01".b),
     Random.bytes(200)].each do |other|
      assert_nil Envelope.load(other), other.inspect
    end
  end

  def test_damaged_bytes_never_raise
    bytes = Envelope.new(body: "body" * 10, holes: [[1, "a"], [20, "b"]]).dump
    rng = Random.new(1)
    answers = Array.new(2000) do
      damaged = bytes.dup
      damaged.setbyte(rng.rand(damaged.bytesize), rng.rand(256))
      Envelope.load(damaged)
    end
    assert(answers.all? { |answer| answer.nil? || answer.is_a?(Envelope) })
    assert_includes answers, nil
  end

  def test_holes_outside_the_body_or_without_a_name_raise
    [[[5, "a"]], [[-1, "a"]], [[2, "a"], [1, "b"]], [[1, ""]], [[1, "a\0b"]]].each do |holes|
      assert_raises(ArgumentError, holes.inspect) { Envelope.new(body: "four", holes: holes) }
    end
  end
end
