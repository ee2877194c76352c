# frozen_string_literal: true

# Every test file requires this first: minitest, Castellan from this checkout, real servers, and two rules.
#
#   require "test_helper"
#
#   class ClockTest < Minitest::Test
#     def test_nanoseconds_grow
#       assert_operator Castellan::Clock.monotonic_ns, :<=, Castellan::Clock.monotonic_ns
#     end
#   end
#
# A warning about a file of this repository is an error, and a test that asserts nothing fails.
# `needs :postgres` skips a test where PostgreSQL is not installed; with CI=true every skip is a failure.
ROOT = File.expand_path("..", __dir__)
$LOAD_PATH.unshift(File.join(ROOT, "lib"), __dir__)
$LOAD_PATH.uniq!

require_relative "support/raise_warnings"
require "minitest/autorun"
require "castellan"
require_relative "support/servers"
require_relative "support/helpers"
require_relative "support/left_databases"
require_relative "support/must_assert"
require_relative "support/run_report"
require_relative "support/divided_run"
