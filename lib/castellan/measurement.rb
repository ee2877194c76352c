# frozen_string_literal: true

module Castellan
  # Holds the cost of a unit of work. Frozen.
  # Durations are nanoseconds; a field that was not measured is nil.
  #
  #   Measurement.new(duration_ns: 7_795_000_000, sql_ns: 373_000_000, queries: 1_139, allocated_objects: 744_989)
  Measurement = Struct.new(:duration_ns, :sql_ns, :queries, :cached_queries, :allocated_objects, :allocated_bytes,
                           :retained_objects, :retained_bytes, :response_bytes, :status, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end
  end
end
