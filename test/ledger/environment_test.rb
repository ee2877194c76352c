# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo/ledger"

class LedgerEnvironmentTest < Minitest::Test
  def test_describes_the_machine_and_versions
    environment = Castellan::Demo::Ledger::Environment.current(database: "SQLite 3.46", gems: %w[minitest nonsense])
    assert_includes environment["ruby"], RUBY_ENGINE_VERSION
    assert_match(/\d+ cores\z/, environment["cpu"])
    assert_equal ["SQLite 3.46", Castellan::VERSION, Gem.loaded_specs["minitest"].version.to_s, nil],
                 environment.values_at("database", "castellan", "minitest", "nonsense")
    assert_includes ["on", "off", "not built"], environment["yjit"]
  end
end
