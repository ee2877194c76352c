# frozen_string_literal: true

require "test_helper"
require "serializer/case_answers"

# The same class bodies and records given to jsonapi-serializer and to Castellan::Serializer: the same document. The cases are in
# test/serializer/cases/.
class DifferentialTest < Minitest::Test
  ALL = "cases/*.rb"
  PLAIN = %w[cases/members.rb cases/relationships.rb cases/documents.rb].freeze

  def test_every_case_answers_as_jsonapi_serializer_does
    assert_same_answers CaseAnswers.of("original", ALL), CaseAnswers.of("castellan", ALL)
  end

  def test_the_constants_of_jsonapi_serializer_do_the_same
    names = %w[members documents active_record concerns].map { |name| "cases/#{name}.rb" }
    assert_same_answers CaseAnswers.of("original", *names), CaseAnswers.of("compat", *names)
  end

  def test_without_active_support_plain_objects_are_written_the_same
    assert_same_answers CaseAnswers.of("original", *PLAIN), CaseAnswers.of("bare", *PLAIN)
  end

  def test_on_postgresql
    needs :postgres
    original, ours = %w[original castellan].map do |library|
      CaseAnswers.of(library, "cases/active_record.rb", env: { "SERIALIZER_DATABASE" => Castellan::TestServers.postgres_url })
    end
    assert_same_answers original, ours
  end

  def test_there_are_cases_of_every_kind
    kinds = CaseAnswers.of("original", ALL).values.map(&:first).tally
    assert_operator kinds.fetch("document"), :>=, 400
    assert_operator kinds.fetch("error"), :>=, 8
  end

  private

  def assert_same_answers(was, is)
    assert_equal was.keys, is.keys
    different = CaseAnswers.different(was, is)
    assert_empty different, CaseAnswers.shown(different, was, is)
  end
end
