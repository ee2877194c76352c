# frozen_string_literal: true

require "test_helper"

class CacheEnvelopeTest < Minitest::Test
  Envelope = Castellan::Cache::Envelope

  def test_a_parsed_envelope_equals_the_dumped_one
    envelope = Envelope.new(body: "{\"é\":}", found: false, cuts: "a6a0a*", numbers: [0, 300], ids: ["posts/1", "7é"])
    loaded = Envelope.load(envelope.dump)
    assert_equal(*[envelope, loaded].map { |one| [one.body, one.found, one.cuts, one.numbers, one.ids] })
    assert_predicate loaded, :frozen?
  end

  def test_every_part_but_the_body_is_optional
    loaded = Envelope.load(Envelope.new(body: "").dump)
    assert_equal ["", true, nil, [], [], nil], [loaded.body, loaded.found, loaded.cuts, loaded.numbers, loaded.ids, loaded.tag]
    tagged = [Envelope.new(body: "b", tag: "t"), kept(tag: "t")].map { |one| Envelope.load(one.dump) }
    assert_equal [["t", nil], ["t", kept.cuts]], tagged.map { |one| [one.tag, one.cuts] }
  end

  def test_anything_else_is_a_miss
    bytes = kept.dump
    [nil, "", "x", "{}", bytes[0..-2], "#{bytes}x".b, "CF#{bytes[2..]}".b, bytes.sub("CE\x05".b, "CE\x04".b),
     Random.bytes(200)].each do |other|
      assert_nil Envelope.load(other), other.inspect
    end
  end

  def test_cuts_that_do_more_than_cut_are_a_miss
    ["a1a*", "a1a2a3a*", "x1a2a*", "@0a2a*", "a1a2", "a1a2P", "a1 a2a*", "a1a2a*\n"].each do |cuts|
      assert_nil Envelope.load(kept(cuts: cuts).dump), cuts
    end
    assert_nil Envelope.load(kept(numbers: [0]).dump)
    assert_nil Envelope.load(kept(sums: [1, 2]).dump)
    assert_equal [1, 2, 3, 4, 5, 6], Envelope.load(kept(sums: [1, 2, 3, 4, 5, 6]).dump).sums
  end

  def test_damaged_bytes_never_raise_and_show_parts_of_the_body_alone
    bytes = kept(body: "body" * 10).dump
    rng = Random.new(1)
    answers = Array.new(2000) do
      damaged = bytes.dup
      damaged.setbyte(rng.rand(damaged.bytesize), rng.rand(256))
      Envelope.load(damaged)
    end
    assert(answers.compact.all? { |answer| answer.cuts.nil? || answer.body.unpack(answer.cuts).join.bytesize <= 40 })
    assert_includes answers, nil
  end

  def test_an_id_that_is_empty_or_contains_the_separator_is_not_kept
    assert_nil kept(ids: ["a", ""]).dump
    assert_nil kept(ids: %W[a b\0]).dump
    assert_nil kept(numbers: [0, 65_536]).dump
  end

  private

  def kept(**parts)
    Envelope.new(body: "body", cuts: "a1a1a*", numbers: [0, 1], ids: %w[a b], **parts)
  end
end
