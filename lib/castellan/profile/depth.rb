# frozen_string_literal: true

module Castellan
  module Profile
    # Reads the depth of a profile from the header `Castellan-Profile: memory` or `?profile=memory`.
    #
    #   Depth.of(env).name    # => "memory"
    #   Depth.of(env).notes   # => ["there is no depth \"memroy\": …"]
    #
    # Does not remove the parameter, so the application receives it, too; `Castellan.app`, which refuses unknown
    # parameters, reads {without} instead. `off` records nothing; an unknown depth becomes "sql" with a note.
    # Scripts, style sheets and fonts of a page (Sec-Fetch-Dest) are recorded only if they name a depth.
    # `aliases: true` accepts the parameters of rack-mini-profiler:
    # `pp=enable`, `pp=profile-memory`, `pp=flamegraph` (with `flamegraph_mode=cpu`, `wall` or `object`),
    # `pp=disable`.
    class Depth
      NAMES = %w[sql memory cpu wall objects].freeze
      DEFAULT = "sql"
      PARAMETER = /(?:\A|[&;])profile=([^&;]*)/
      ALIAS = /(?:\A|[&;])pp=([^&;]*)/
      MODE = /(?:\A|[&;])flamegraph_mode=([^&;]*)/
      ALIASES = { "enable" => "sql", "profile-memory" => "memory", "flamegraph" => "wall", "async-flamegraph" => "wall", "disable" => "off",
                  "skip" => "off" }.freeze
      MODES = { "cpu" => "cpu", "wall" => "wall", "object" => "objects" }.freeze
      FILES = %w[script style font].freeze # a page loads many, and they hide its other requests in the list
      private_constant :PARAMETER, :ALIAS, :MODE, :ALIASES, :MODES, :FILES

      # @return [String, nil] one of NAMES; nil if the request must not be recorded
      attr_reader :name
      # @return [Array<String>] notes for {Result#notes}
      attr_reader :notes

      # @param env [Hash] Rack environment
      # @param aliases [Boolean] whether to accept rack-mini-profiler's `pp=`
      # @return [Depth]
      def self.of(env, aliases: false)
        query = env["QUERY_STRING"].to_s.b
        asked = env["HTTP_CASTELLAN_PROFILE"] || query[PARAMETER, 1] || (mini_profiler(query) if aliases)
        new(asked || ("off" if FILES.include?(env["HTTP_SEC_FETCH_DEST"])))
      end

      # @param query [String] a query string
      # @param aliases [Boolean]
      # @return [String, nil] the query string without the parameters of the profiler; nil if it has none
      def self.without(query, aliases: false)
        asked = aliases ? [PARAMETER, ALIAS, MODE] : [PARAMETER]
        parts = query.split("&")
        rest = parts.reject { |part| asked.any? { |parameter| part.match?(parameter) } }
        rest.join("&") if rest.size < parts.size
      end

      def self.mini_profiler(query)
        depth = ALIASES[query[ALIAS, 1]]
        depth == "wall" ? MODES.fetch(query[MODE, 1], depth) : depth
      end
      private_class_method :mini_profiler

      # @param asked [String, nil] the client's value
      def initialize(asked)
        asked = asked.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").strip.downcase
        known = NAMES.include?(asked)
        @name = known ? asked : (DEFAULT unless asked == "off")
        note = "there is no depth #{asked[0, 40].inspect}: SQL was recorded; write one of #{NAMES.join(", ")}"
        @notes = known || ["", "off"].include?(asked) ? [] : [note]
        freeze
      end
    end
  end
end
