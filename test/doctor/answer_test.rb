# frozen_string_literal: true

require "test_helper"

class AnswerTest < Minitest::Test
  # A Rack body that counts calls of close.
  class Body
    attr_reader :closed

    def initialize(*chunks)
      @chunks = chunks
      @closed = 0
    end

    def each(&block) = @chunks.each { |chunk| chunk.is_a?(Exception) ? raise(chunk) : block.call(chunk) }
    def close = @closed += 1
  end

  def test_an_enumerable_body_is_read_and_closed_once
    body = Body.new("Grüße", "\xFF".b)
    answer = answer_of([200, { "Content-Type" => "x" }, body])
    assert_equal "Grüße\xFF".b, answer.body.b
    assert_equal [1, "x", true], [body.closed, answer.headers["content-type"], answer.success?]
  end

  def test_a_body_that_raises_half_way_is_closed_and_reported
    body = Body.new("a", IOError.new("gone"))
    answer = answer_of([200, {}, body])
    assert_equal [1, nil, "gone"], [body.closed, answer.status, answer.error.message]
  end

  def test_a_streaming_body_writes_by_itself
    body = lambda do |stream|
      stream.write("a", "b")
      stream << "c" << "d"
      stream.flush.close
      stream.write("e") unless stream.closed?
    end
    assert_equal "abcd", answer_of([200, {}, body]).body
    assert_equal "x", answer_of([200, { "rack.hijack" => ->(io) { io.write("x") && io.close } }, []]).body
  end

  def test_an_error_of_the_application_or_of_its_framework_is_kept
    assert_equal "no", answer_of(->(_env) { raise "no" }).error.message
    answer = answer_of(lambda { |env|
      env["action_dispatch.exception"] = KeyError.new("k")
      [500, {}, []]
    })
    assert_equal [500, "k"], [answer.status, answer.error.message]
  end

  def test_a_request_that_ends_the_process_or_has_no_end_is_an_error_of_it
    endless = ->(env) { endless.call(env) }
    assert_instance_of SystemStackError, answer_of(endless).error
    assert_equal 3, answer_of(->(_env) { exit 3 }).error.status
    assert_raises(Interrupt) { answer_of(->(_env) { raise Interrupt }) }
  end

  def test_an_invalid_rack_response_is_reported
    [nil, [200], "hello", [200, nil, []], [200, {}, nil]].each do |result|
      error = answer_of(result).error
      assert_equal "the application answered with #{result.inspect}, which is no [status, headers, body] of Rack", error.message
    end
  end

  private

  def answer_of(result)
    Castellan::Doctor::Answer.to(result.respond_to?(:call) ? result : ->(_env) { result }, {})
  end
end
