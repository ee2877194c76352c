# frozen_string_literal: true

require "test_helper"
require "serializer/case_answers"

# The same class bodies and records given to jsonapi-serializer and to Castellan::Serializer: the same hash and the same bytes. The
# cases are in test/serializer/cases/.
class DifferentialTest < Minitest::Test
  ALL = "cases/*.rb"

  def test_every_case_answers_as_jsonapi_serializer_does
    assert_equal original.keys, CaseAnswers.of("castellan", ALL).keys
    assert_same_answers original, CaseAnswers.of("castellan", ALL)
  end

  def test_the_constants_of_jsonapi_serializer_do_the_same
    assert_same_answers original, answers("compat", "members", "documents", "active_record", "concerns")
  end

  def test_without_active_support_plain_objects_are_written_the_same
    assert_same_answers original, answers("bare", "members", "relationships", "documents"), escaped: false
  end

  def test_on_postgresql
    needs :postgres
    assert_same_answers(*%w[original castellan].map do |library|
      answers(library, "active_record", "record_states", "ids", env: { "SERIALIZER_DATABASE" => Castellan::TestServers.postgres_url })
    end)
  end

  def test_there_are_cases_of_every_kind
    kinds = original.values.map(&:first).tally
    assert_operator kinds.fetch("document"), :>=, 400
    assert_operator kinds.fetch("error"), :>=, 8
  end

  private

  def original = CaseAnswers.of("original", ALL)

  def answers(library, *names, **options)
    CaseAnswers.of(library, *names.map { |name| "cases/#{name}.rb" }, **options)
  end

  # Of all cases that the second has.
  def assert_same_answers(was, is, escaped: true)
    assert_empty is.keys - was.keys
    was = was.slice(*is.keys)
    assert_operator was.size, :>=, 100
    different = CaseAnswers.different(was, is, escaped: escaped)
    assert_empty different, CaseAnswers.shown(different, was, is)
  end
end
