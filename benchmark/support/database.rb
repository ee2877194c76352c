# frozen_string_literal: true

require "active_record"
require "tmpdir"

module Benchmarks
  # Creates empty databases for a benchmark's own tables.
  #
  #   Database.each { |name, url| Database.open(url) { … } }   # "PostgreSQL" if it is installed, and "SQLite"
  module Database
    module_function

    # @yieldparam name [String]
    # @yieldparam url [String, nil] nil for SQLite in a file
    def each
      yield "PostgreSQL", Castellan::TestServers.postgres_url if Castellan::TestServers.available?(:postgres)
      yield "SQLite", nil
    end

    # Times are as in a Rails application: UTC, with time zones.
    # @return the result of the block
    def open(url)
      Dir.mktmpdir("castellan-bench-") do |dir|
        ActiveRecord::Base.establish_connection(url || { adapter: "sqlite3", database: File.join(dir, "bench.sqlite3") })
        ActiveRecord::Base.logger = nil
        ActiveRecord::Base.time_zone_aware_attributes = true
        Time.zone_default = Time.find_zone!("UTC")
        yield
      ensure
        ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
      end
    end
  end
end
