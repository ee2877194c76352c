# frozen_string_literal: true

module Castellan
  module Profile
    # How deep a request asks to be looked into: by `?profile=memory`, or by the header `Castellan-Profile: memory`, which goes first.
    #
    #   Depth.of(env).name    # => "memory"
    #   Depth.of(env).notes   # => ["there is no depth \"memroy\": …"]
    #
    # Nothing is taken from the request, so the application sees the parameter as well. `off` records nothing. An unknown depth is "sql"
    # with a note. With `aliases:` what people write for rack-mini-profiler is understood: `pp=enable`, `pp=profile-memory`,
    # `pp=flamegraph` (with its `flamegraph_mode=cpu`, `wall` or `object`), `pp=disable`.
    class Depth
      NAMES = %w[sql memory cpu wall objects].freeze
      DEFAULT = "sql"
      PARAMETER = /(?:\A|[&;])profile=([^&;]*)/
      ALIAS = /(?:\A|[&;])pp=([^&;]*)/
      MODE = /(?:\A|[&;])flamegraph_mode=([^&;]*)/
      ALIASES = { "enable" => "sql", "profile-memory" => "memory", "flamegraph" => "wall", "async-flamegraph" => "wall", "disable" => "off",
                  "skip" => "off" }.freeze
      MODES = { "cpu" => "cpu", "wall" => "wall", "object" => "objects" }.freeze
      private_constant :PARAMETER, :ALIAS, :MODE, :ALIASES, :MODES

      # @return [String, nil] one of NAMES; nil when nothing should be recorded
      attr_reader :name
      # @return [Array<String>]
      attr_reader :notes

      # @param env [Hash] of Rack
      # @param aliases [Boolean]
      # @return [Depth]
      def self.of(env, aliases: false)
        query = env["QUERY_STRING"].to_s
        return PLAIN unless env.key?("HTTP_CASTELLAN_PROFILE") || query.include?("profile=") || (aliases && query.include?("pp="))

        new(env["HTTP_CASTELLAN_PROFILE"] || query.b[PARAMETER, 1] || (mini_profiler(query.b) if aliases))
      end

      def self.mini_profiler(query)
        depth = ALIASES[query[ALIAS, 1]]
        depth == "wall" ? MODES.fetch(query[MODE, 1], depth) : depth
      end
      private_class_method :mini_profiler

      # @param asked [String, nil]
      def initialize(asked)
        asked = asked.to_s.strip.downcase
        @name = if asked.empty? then DEFAULT
                elsif asked != "off" then NAMES.include?(asked) ? asked : DEFAULT
                end
        @notes = @name == DEFAULT && !["", DEFAULT].include?(asked) ? [Depth.unknown(asked)] : []
        freeze
      end

      # @return [String] the note for a depth that there is not
      def self.unknown(asked)
        text = asked.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, 40]
        "there is no depth #{text.inspect}: SQL was recorded; write one of #{NAMES.join(", ")}"
      end

      PLAIN = new(nil)
      private_constant :PLAIN
    end
  end
end
