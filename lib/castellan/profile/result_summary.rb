# frozen_string_literal: true

module Castellan
  module Profile
    # Holds the row of a {Result} in the list of profiles. Frozen.
    #
    #   result.summary.queries   # => 52
    #
    # `number` is the running number in the store, nil before the result is stored. `queries` and `findings`
    # are counts.
    ResultSummary = Struct.new(:number, :id, :at, :method, :path, :query, :endpoint, :status, :duration_ns, :sql_ns, :queries, :findings,
                               :objects, :response_bytes, :depth, :exception, keyword_init: true) do
      # @param result [Result]
      # @return [ResultSummary]
      def self.of(result)
        same = %i[id at method path query endpoint status duration_ns response_bytes depth exception]
        new(**same.to_h { |name| [name, result.public_send(name)] },
            sql_ns: result.parts[:sql_ns], queries: result.totals[:queries], findings: result.findings.size,
            objects: result.objects[:count])
      end

      def initialize(**)
        super
        freeze
      end
    end
  end
end
