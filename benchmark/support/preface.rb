# frozen_string_literal: true

require "etc"
require "json"
require "sqlite3"

module Benchmarks
  # Writes the first lines of a benchmark's page: the command, the versions, and the way of measuring.
  #
  #   Preface.lines("records", 9)   # => ["Written by `rake bench:records`: Ruby 3.1.2 …", "", "Documents are …"]
  module Preface
    GEMS = %w[activerecord jsonapi-serializer panko_serializer alba oj oj_serializers pg sqlite3 json].freeze

    module_function

    # @param name [String] the name of the rake task
    # @return [Array<String>] lines of Markdown
    def lines(name, rounds)
      versions = GEMS.map { |gem| "#{gem} #{Gem.loaded_specs[gem]&.version || JSON::VERSION}" }.join(", ")
      yjit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "YJIT on" : "YJIT off"
      ["Written by `rake bench:#{name}`: Ruby #{RUBY_VERSION} (#{yjit}), #{Etc.nprocessors} processors, #{RUBY_PLATFORM}, #{versions}.", "",
       "Documents are parsed and compared before anything is timed. The ways take turns, #{rounds} rounds; `ms` is the median of the " \
       "rounds, `times` the ratio of the medians, with the least and the greatest ratio of a round. Objects are those that one call " \
       "allocates."]
    end
  end
end
