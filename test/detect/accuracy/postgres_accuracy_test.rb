# frozen_string_literal: true

require "test_helper"
require "open3"

# The samples on a server: other placeholders, RETURNING, cursors, and truly asynchronous queries.
class PostgresAccuracyTest < Minitest::Test
  def test_the_samples_of_active_record_are_judged_correctly_on_postgres = assert_right("active_record")
  def test_the_samples_of_sequel_are_judged_correctly_on_postgres = assert_right("sequel")

  private

  def assert_right(orm)
    large_runs_only
    needs :postgres
    command = [RbConfig.ruby, "-w", "-I#{ROOT}/lib", File.join(__dir__, "on_postgres.rb"), orm, Castellan::TestServers.postgres_url]
    output, errors, status = Open3.capture3(*command)
    assert_predicate status, :success?, errors
    assert_match(/\A\d{2,} samples, 0 wrong\n\z/, output)
  end
end
