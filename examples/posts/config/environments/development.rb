# frozen_string_literal: true

Rails.application.configure do
  config.enable_reloading = true
  config.eager_load = false
  config.consider_all_requests_local = true
  config.hosts.clear
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = ENV.fetch("RAILS_LOG_LEVEL", "debug")
  config.active_record.verbose_query_logs = true
end
