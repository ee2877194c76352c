# frozen_string_literal: true

module Castellan
  # One statement that was sent to a database. Frozen.
  #
  #   Query.new(sql: "SELECT 1", name: "User Load", started_ns: 0, duration_ns: 190_000, cached: false)
  #
  # Made only by observers that keep every statement (the profiler); the detector counts without making one, see
  # {Instrument}.
  Query = Struct.new(:sql, :name, :started_ns, :duration_ns, :cached, :rows, :frames, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end

    # @return [String] the statement without its literals
    def fingerprint
      Fingerprint.of(sql)
    end
  end
end
