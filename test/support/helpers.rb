# frozen_string_literal: true

require "tmpdir"

module Castellan
  # What tests share: servers, ports, environment, temporary files.
  #
  #   needs :postgres, :chromium
  #   with_env("CASTELLAN" => "off") { … }
  module TestHelpers
    # Goes on only where these servers (keys of TestServers::BINARIES) are installed.
    def needs(*names)
      missing = names.reject { |name| TestServers.available?(name) }
      skip "needs #{missing.join(' and ')}" if missing.any?
    end

    # With CI=true nothing may be left out.
    def skip(reason = nil, *)
      flunk("skipped, and CI=true forbids it: #{reason}") if ENV["CI"] == "true"
      super
    end

    def free_port = TestServers.free_port

    # Sets environment variables for the block (nil deletes one) and puts them back.
    def with_env(variables)
      before = variables.to_h { |name, _| [name, ENV.fetch(name, nil)] }
      ENV.update(variables)
      yield
    ensure
      ENV.update(before)
    end
  end
end

Minitest::Test.include(Castellan::TestHelpers)
