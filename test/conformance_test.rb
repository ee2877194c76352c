# frozen_string_literal: true

require "test_helper"
require "support/conformance"

# docs/conformance.md is complete and up to date.
class ConformanceTest < Minitest::Test
  C = Castellan::Conformance

  def test_the_page_equals_the_output_of_the_command
    assert_equal C.page, File.read(File.join(ROOT, "docs/conformance.md")), "run rake conformance"
  end

  def test_every_statement_has_a_test_or_a_reason
    assert_equal [188, 46, 46], C.statements.values.map(&:size)
    assert_empty C.ids - C.tests.keys - C.reasons.keys
    assert_empty C.tests.keys - C.ids
    assert_empty C.reasons.keys - C.ids
    assert_empty C.reasons.keys & C.tests.keys
  end

  def test_an_unknown_statement_is_refused
    error = assert_raises(ArgumentError) { Module.new.extend(C::Covers).covers("create-type-member", "crate-type-member") }
    assert_includes error.message, "crate-type-member"
  end
end
