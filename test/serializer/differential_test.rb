# frozen_string_literal: true

require "test_helper"
require "open3"
require "json"
require "set"

# The same class bodies and records given to jsonapi-serializer and to Castellan::Serializer: the same document.
# Each library is in a process of its own; the cases are in test/serializer/cases/.
class DifferentialTest < Minitest::Test
  RUN = File.join(ROOT, "test/serializer/run_cases.rb")
  ANSWERS = Hash.new do |answers, library|
    output, errors, status = Open3.capture3(RbConfig.ruby, "-w", "-I#{ROOT}/lib", RUN, library, binmode: true)
    raise errors unless status.success?

    answers[library] = JSON.parse(output)
  end

  def test_every_case_answers_as_jsonapi_serializer_does
    different = original.keys.reject { |name| same?(original[name], ours[name]) }
    shown = different.first(5).map { |name| [name, *original[name], *ours[name]].map { |text| text[0, 800] }.join("\n  ") }
    assert shown.empty?, "#{different.size} of #{original.size} cases differ\n#{shown.join("\n")}"
  end

  def test_there_are_cases_of_every_kind
    assert_equal original.keys, ours.keys
    assert_operator original.size, :>=, 150
    kinds = original.values.map(&:first).tally
    assert_operator kinds.fetch("document"), :>=, 150
    assert_operator kinds.fetch("error"), :>=, 8
  end

  private

  def original = ANSWERS["original"]
  def ours = ANSWERS["castellan"]

  def same?(was, is)
    return was == is unless was.first == "document" && is.first == "document"

    was[1] == is[1] && (was[2] == is[2] || document(was[2]) == document(is[2]))
  end

  # As JSON:API reads it: the order of members and of the included records has no meaning.
  def document(json)
    document = JSON.parse(json)
    document["included"] = document["included"].to_set if document["included"]
    document
  end
end
