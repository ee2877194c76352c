# frozen_string_literal: true

require "test_helper"
require "serializer/case_answers"

# jsonapi-serializer and Castellan::Serializer write the same hash and the same bytes for the same class
# bodies and records. See test/serializer/cases/.
class DifferentialTest < Minitest::Test
  ALL = "cases/*.rb"

  def test_every_case_equals_jsonapi_serializer
    assert_equal original.keys, CaseAnswers.of("castellan", ALL).keys
    assert_same_answers original, CaseAnswers.of("castellan", ALL)
  end

  def test_compat_constants_write_the_same_documents
    assert_same_answers original, answers("compat", "members", "documents", "active_record", "concerns")
  end

  def test_plain_objects_are_the_same_without_active_support
    assert_same_answers original, answers("bare", "members", "relationships", "documents"), escaped: false
  end

  def test_cases_on_postgresql_equal_jsonapi_serializer
    large_runs_only
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

  # Compares all cases of the second run.
  def assert_same_answers(was, is, escaped: true)
    assert_empty is.keys - was.keys
    was = was.slice(*is.keys)
    assert_operator was.size, :>=, 100
    different = CaseAnswers.different(was, is, escaped: escaped)
    assert_empty different, CaseAnswers.shown(different, was, is)
  end
end
