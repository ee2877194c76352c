# frozen_string_literal: true

require "logger"
require "sequel"
require_relative "../shared/database_url"

# The connection, and the plugins of all models. freeze_datasets freezes all datasets, Sequel 5's default.
DB = Sequel.connect(DatabaseUrl.new.for_sequel, max_connections: 5, sql_log_level: :debug)
DB.loggers << Logger.new($stdout, level: ENV.fetch("LOG_LEVEL", "warn"))
DB.extension :freeze_datasets, :pagination

Sequel::Model.plugin :subclasses
Sequel::Model.plugin :tactical_eager_loading
