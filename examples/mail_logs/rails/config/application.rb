# frozen_string_literal: true

ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)
require "bundler/setup"

require "rails"
require "active_model/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "jsonapi-resources"
require_relative "../../shared/database_url"
require_relative "../../shared/bearer_token"

ENV["DATABASE_URL"] = DatabaseUrl.new.for_active_record

# Mail logs as JSON:API, with only those parts of Rails that jsonapi-resources needs.
#
#   PORT=9292 bundle exec puma -C config/puma.rb
#   curl -g -H "Authorization: Bearer $(../bin/token)" 'http://127.0.0.1:9292/mail-logs?include=category,company&page[number]=2'
#
# All environments behave like production: code is loaded at boot and never reloaded, and only warnings and
# errors are logged, to standard output. LOG_LEVEL=debug shows the SQL.
class MailLogsApplication < Rails::Application
  config.load_defaults 7.2
  config.root = File.expand_path("..", __dir__)
  config.api_only = true
  config.eager_load = true
  config.enable_reloading = false
  config.consider_all_requests_local = false
  config.hosts.clear
  config.secret_key_base = "mail logs keep no session: Rails wants the key all the same"
  config.logger = ActiveSupport::Logger.new($stdout)
  config.action_controller.action_on_unpermitted_parameters = :raise # jsonapi-resources turns it into a 400
  config.log_level = ENV.fetch("LOG_LEVEL", "warn").to_sym

  if ENV["WITH_CASTELLAN"] == "1"
    require "castellan"
    config.autoload_paths << root.join("castellan_steps")
    config.eager_load_paths << root.join("castellan_steps")
    config.paths["config/routes.rb"] << root.join("config/routes/castellan.rb")
  end
end
