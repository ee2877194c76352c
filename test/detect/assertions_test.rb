# frozen_string_literal: true

require_relative "active_record_world"
require "tempfile"

class DetectAssertionsTest < Minitest::Test
  include Castellan::Detect::Assertions

  World = ActiveRecordWorld

  def test_work_that_repeats_no_query_passes_and_returns_its_value
    assert_equal(5, assert_no_repeated_queries { World::User.preload(:employee).map(&:employee).size })
  end

  def test_work_that_repeats_queries_fails_with_line_and_fix
    error = assert_raises(Minitest::Assertion) { assert_no_repeated_queries("the index") { World::User.all.map(&:employee) } }
    assert_includes error.message, "the index\nQueries repeat: 1 finding"
    assert_includes error.message, "test/detect/assertions_test.rb:#{__LINE__ - 2}"
    assert_includes error.message, "add .preload(:employee)"
  end

  def test_a_known_finding_passes_and_another_does_not
    known = Castellan::Detect::KnownFindings.new([{ "file" => "test/detect/assertions_test.rb", "reason" => "five are few",
                                                    "association" => "ActiveRecordWorld::User#employee" }])
    assert_no_repeated_queries(known: known) { World::User.all.map(&:employee) }
    assert_raises(Minitest::Assertion) { assert_no_repeated_queries(known: known) { World::User.all.map { |user| user.posts.to_a } } }
  end

  def test_known_findings_are_read_from_a_file_and_need_a_reason
    Tempfile.create("known") do |file|
      file.write("- file: a.rb\n  association: User#employee\n")
      file.flush
      error = assert_raises(Castellan::ConfigurationError) { assert_no_repeated_queries(known: file.path) { nil } }
      assert_includes error.message, "#{file.path}, entry 1: give the reason"
    end
  end

  def test_a_failure_lists_each_entry_for_the_known_findings_once
    error = assert_raises(Minitest::Assertion) do
      assert_no_repeated_queries { World::User.all.map { |user| [user.posts.count, user.posts.maximum(:id)] } }
    end
    assert_equal 1, error.message.scan("association: ActiveRecordWorld::User#posts").size, error.message
  end

  def test_queries_that_grow_with_the_data_fail_with_their_line
    error = assert_raises(Minitest::Assertion) { assert_queries_constant(tags) { World::Tag.all.map { |tag| World::Tag.find(tag.id) } } }
    assert_includes error.message, "1.0 more queries per record at test/detect/assertions_test.rb:#{__LINE__ - 1}"
  end

  def test_constant_queries_pass
    assert_queries_constant(tags) { World::Tag.all.to_a }
  end

  def test_a_block_that_does_not_read_the_new_data_fails
    error = assert_raises(Minitest::Assertion) { assert_queries_constant(tags) { World::User.all.to_a } }
    assert_includes error.message, "were not part of the work"
  end

  def teardown
    World::Tag.where(name: "grown").delete_all
  end

  private

  def tags = ->(count) { count.times { World::Tag.create!(name: "grown") } }
end
