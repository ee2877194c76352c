# frozen_string_literal: true

ENV["BUNDLE_GEMFILE"] ||= File.expand_path("Gemfile", __dir__)
require "bundler/setup"
require_relative "app"

# The steps with Castellan are a separate app. Without WITH_CASTELLAN=1, the gem is not loaded.
steps = File.join(__dir__, "castellan_steps", "config.ru")
map("/castellan") { run Rack::Builder.parse_file(steps) } if ENV["WITH_CASTELLAN"] == "1" && File.exist?(steps)

run MailLogsApp.freeze.app
