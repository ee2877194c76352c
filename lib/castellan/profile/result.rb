# frozen_string_literal: true

require "json"

module Castellan
  module Profile
    # Holds the data of one profile. Deeply frozen: `to_h` returns data for JSON, `from_h` reads it back.
    #
    #   result = Result.from_h(JSON.parse(File.read("profile.json")))
    #   result.endpoint          # => "GET /users/:id"
    #   result.queries.first     # => { at_ns: 120_000, duration_ns: 340_000, sql: "select * from users …", … }
    #
    # - `id`: random, URL-safe; `at`: Float, Unix time in seconds
    # - `method`, `path`, `query`: the request line; filtered parameters are `[FILTERED]`
    # - `headers`: `{"accept" => "…"}`, some of the request headers, never Authorization or Cookie
    # - `endpoint`: "GET users#index" in Rails, else "GET /users/:id"
    # - `status`, `response_bytes`: Integer, nil without a response; `duration_ns`: until the end of the body
    # - `parts`: `sql_ns`, `render_ns`, `cache_ns` and `outside_ns` (the rest) add up to the duration; `gc_ns`
    #   overlaps them
    # - `objects`: `count`, `scope` ("process"), `overlapping`: the number of concurrent requests whose
    #   objects are included
    # - `queries`: each with `at_ns` (since the start), `duration_ns`, `rows` (for a write those of RETURNING;
    #   nil if the driver does not report them), `cached`, `sql` and `fingerprint` (without literals),
    #   `frames` (of the application, "path:line:in `name'", innermost first), `finding` (an index into
    #   `findings`, or nil)
    # - `cache`: each with `layer` ("document", "record", "rails" …), `outcome` ("hit", "miss", "write" …),
    #   `at_ns`, `duration_ns`; Castellan's own layers also have `bytes` and `age` in seconds
    # - `spans`: further entries of the timeline, each with `kind` ("render"), `name`, `at_ns`, `duration_ns`
    # - `findings`: each as `Finding#to_h`, but `kind` is a String; `depth`: "sql", "memory", "cpu", "wall" or
    #   "objects"
    # - `notes`: sentences, e.g. about an unknown depth, a wait for another profile, or truncation
    # - `memory`: nil, or `total_allocated` and `total_retained` (objects), `total_allocated_bytes`,
    #   `total_retained_bytes`, and `by_gem`, `by_file`, `by_line`, `by_class`: rows of `name`, `allocated`,
    #   `retained`, `allocated_bytes`, `retained_bytes`, most bytes first
    # - `flame`: nil, or a Hash with String keys in speedscope's format; `exception`: nil, or "ClassName at
    #   path:line"
    # - `truncated`: `queries`, the number of unlisted queries (`totals` includes them); `bytes`, whether
    #   recording stopped before the end of the response
    # - `totals`: `queries`, `cached_queries` and `rows` of all queries, listed or not
    class Result
      # Clients and speedscope choose the keys of these members, so they stay Strings.
      TEXT_KEYS = %i[headers flame].freeze
      DEFAULTS = { at: 0.0, method: nil, path: nil, query: "", headers: {}, endpoint: nil, status: nil, response_bytes: nil, duration_ns: 0,
                   parts: { sql_ns: 0, render_ns: 0, cache_ns: 0, gc_ns: 0, outside_ns: 0 },
                   objects: { count: 0, scope: "process", overlapping: 0 }, queries: [], cache: [], spans: [], findings: [],
                   depth: "sql", notes: [], memory: nil, flame: nil, exception: nil, truncated: { queries: 0, bytes: false },
                   totals: { queries: 0, cached_queries: 0, rows: 0 } }.freeze
      MEMBERS = [:id, *DEFAULTS.keys].freeze
      private_constant :TEXT_KEYS, :DEFAULTS

      attr_reader(*MEMBERS)

      # @param hash [Hash] as returned by {#to_h}; String keys, as after JSON.parse, are accepted
      # @return [Result]
      # @raise [ArgumentError] if the hash is not a valid result
      def self.from_h(hash)
        given = hash.to_h.transform_keys(&:to_sym).slice(*MEMBERS)
        new(**given.to_h { |name, value| [name, TEXT_KEYS.include?(name) ? value : plain(value)] })
      end

      # @return [Object] the value after a round trip through JSON, with Symbols as keys
      def self.plain(value) = JSON.parse(JSON.generate(value), symbolize_names: true)

      # @param id [String]
      # @param members [Hash] see above; the default of an omitted member is empty
      def initialize(id:, **members)
        unknown = members.keys - MEMBERS
        raise ArgumentError, "a profile has no #{unknown.first.inspect}; it has #{MEMBERS.join(", ")}" if unknown.any?

        Ractor.make_shareable({ id: id, **DEFAULTS, **members }).each { |name, value| instance_variable_set("@#{name}", value) }
        freeze
      end

      # @return [Integer, nil] the rows that the queries returned; nil if no driver reported them
      def rows = (totals[:rows] if totals[:rows].to_i.positive? || queries.empty? || queries.any? { |query| query[:rows] })

      # @return [Hash{Symbol => Object}] plain values
      def to_h = MEMBERS.to_h { |name| [name, public_send(name)] }

      # @return [String] for a terminal
      def to_text = TextReport.new(self).to_s

      # @return [String] JSON
      def to_json(*arguments) = to_h.to_json(*arguments)

      # @return [String] a standalone HTML page
      def to_html = Page::Export.new(self).to_s

      # @return [Boolean] whether all members are equal
      def ==(other) = other.is_a?(Result) && to_h == other.to_h
      alias eql? ==

      def hash = id.hash

      # @return [ResultSummary] a row for the list of profiles
      def summary = ResultSummary.of(self)

      def inspect = "#<#{self.class} #{id} #{endpoint} #{status} #{(duration_ns / 1e6).round(1)} ms>"
    end
  end
end
