# frozen_string_literal: true

module Castellan
  # One call to another server (Redis, HTTP) as an observer sees it. Frozen.
  #
  #   Call.new(kind: :redis, name: "GET", started_ns: 0, duration_ns: 80_000)
  Call = Struct.new(:kind, :name, :started_ns, :duration_ns, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end
  end
end
