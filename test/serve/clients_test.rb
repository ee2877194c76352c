# frozen_string_literal: true

require "test_helper"
require "serve/journal"
require "support/npm"

# JSON:API clients from npm read, create, change and delete records of an application behind Puma.
class ClientsTest < Minitest::Test
  SCRIPTS = File.expand_path("clients", __dir__)

  def setup
    skip "needs node and npm" unless Castellan::Npm.available?
    journal.fill
  end

  def test_kitsu_makes_a_round_trip
    assert_equal [
      [["First", "Ada", %w[ruby sql]], ["Hidden", "Edsger", %w[http]]], ["From kitsu", "2"], ["Changed by kitsu", 4], "Grace",
      [["422", "/data/attributes/title"]], "404"
    ], results("kitsu.mjs", "kitsu@11.1.0")
  end

  def test_devour_makes_a_round_trip
    assert_equal [
      [["First", "Ada", %w[ruby sql]], ["Hidden", "Edsger", %w[http]]], ["From devour", "2"], ["Changed by devour", 4], 0,
      "title is too short (minimum is 3 characters)", "gone"
    ], results("devour.mjs", "devour-client@3.2.0")
  end

  def test_orbit_makes_a_round_trip
    assert_equal [
      [["First", "writer", 2], ["Hidden", "writer", 1], ["Second", "writer", 0]], %w[77 orbit], 403,
      ["Changed by Orbit", "Grace", %w[sql orbit]], "/data/attributes/title", "gone"
    ], results("orbit.mjs", "@orbit/jsonapi@0.17.1", "@orbit/records@0.17.0", "@orbit/serializers@0.17.0")
  end

  private

  def journal = Journal.sequel(:sqlite)

  def results(script, *packages)
    models = journal.models
    app = Castellan.app do
      authenticate { |_env| 0 }
      %w[Post Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
    end
    output, passed = Castellan::TestServers.puma(app) do |url|
      Castellan::Npm.run(*packages, script: File.join(SCRIPTS, script), arguments: [url])
    end
    assert passed, output
    output.lines.map { |line| JSON.parse(line) }
  end
end
