# frozen_string_literal: true

require "castellan/profile"

module Castellan
  # Builds results like those of the middleware, to test how they are displayed.
  #
  #   Castellan::Profiles.slow                      # a Castellan::Profile::Result of a users index with two N+1
  #   Castellan::Profiles.fast(id: "other")
  #   Castellan::Profiles.deep                      # with memory and a flame graph
  #   Castellan::Profiles.kept(result, …)           # => Castellan::Profile::Results, in memory
  module Profiles
    EMPLOYEE = "select employees.* from employees where employees.user_id = ? limit ?"
    TOKENS = "select authentication_tokens.* from authentication_tokens where authentication_tokens.user_id = ? and on_behalf = ?"
    USERS = "select users.* from users where users.id in (select assignments.user_id from assignments)"
    SERIALIZER = "app/serializers/user_index_serializer.rb"
    CONTROLLER = "app/controllers/users/index_serializer_controller.rb"

    SLOW = {
      duration_ns: 212_600_000, status: 200, response_bytes: 65_976,
      parts: { sql_ns: 16_700_000, render_ns: 21_000_000, cache_ns: 90_000, outside_ns: 174_810_000, gc_ns: 11_000_000 },
      objects: { count: 262_503, scope: "process", overlapping: 0 },
      cache: [{ layer: "document", outcome: "miss", at_ns: 1_000_000, duration_ns: 90_000 }],
      spans: [{ kind: "render", name: "json", at_ns: 180_000_000, duration_ns: 21_000_000 }],
      totals: { queries: 325, cached_queries: 3, rows: 1_612 }
    }.freeze
    FAST = {
      duration_ns: 12_400_000, status: 200, response_bytes: 65_976, totals: { queries: 1, cached_queries: 0, rows: 162 },
      parts: { sql_ns: 700_000, render_ns: 0, cache_ns: 0, outside_ns: 11_700_000, gc_ns: 0 },
      objects: { count: 8_166, scope: "process", overlapping: 0 }
    }.freeze

    def self.finding(sql, line, association, total_ns)
      Finding.new(kind: :n_plus_one, count: 162, cached_count: 0, fingerprint: sql, location: "#{SERIALIZER}:#{line}",
                  parent_location: "#{CONTROLLER}:8", parent_count: 162, parent_model: "User", association: "User##{association}",
                  total_ns: total_ns, fix: "add .preload(:#{association}) where the users are loaded: #{CONTROLLER}:8",
                  source: "object.#{association}&.id", stack: []).to_h.merge(kind: "n_plus_one")
    end

    EMPLOYEE_FINDING = finding(EMPLOYEE, 12, "employee", 3_860_000)
    TOKENS_FINDING = finding(TOKENS, 16, "tokens", 12_400_000)
    # A finding that combines many requests.
    VAIN = Finding.new(kind: :unused_eager_load, count: 20, cached_count: 0, association: "User#groups", source: "User.preload(:groups)",
                       location: "#{CONTROLLER}:8", parent_location: "#{CONTROLLER}:8", parent_count: 162, parent_model: "User",
                       fix: "take :groups out of what is loaded with the users at #{CONTROLLER}:8: in 20 requests nobody read it")

    class << self
      def slow(id: "slow", **members)
        Profile::Result.new(**SLOW, **request(id), queries: slow_queries, findings: [EMPLOYEE_FINDING, TOKENS_FINDING], **members)
      end

      def fast(id: "fast", **members)
        users = query(USERS, 1_000_000, 700_000, "#{CONTROLLER}:8:in `index'", rows: 162)
        Profile::Result.new(**FAST, **request(id), at: 1_700_000_100.0, queries: [users], **members)
      end

      def deep(id: "deep", **members)
        slow(id: id, depth: "memory", memory: memory, flame: flame, **members)
      end

      def kept(*results)
        Profile::Results.new(Store::MemoryStore.new(max_bytesize: 64_000_000)).tap { |all| results.each { |result| all.add(result) } }
      end

      def query(sql, at_ns, duration_ns, frame, rows: 1, finding: nil)
        { at_ns: at_ns, duration_ns: duration_ns, rows: rows, cached: false, sql: sql, fingerprint: sql,
          frames: [frame, "app/controllers/application_controller.rb:4:in `render_all'"], finding: finding }
      end

      def flame
        { "$schema" => "https://www.speedscope.app/file-format-schema.json", "name" => "GET users#index",
          "shared" => { "frames" => [{ "name" => "UsersController#index", "file" => CONTROLLER, "line" => 8 },
                                     { "name" => "UserIndexSerializer#employee_id", "file" => SERIALIZER, "line" => 12 }] },
          "profiles" => [{ "type" => "sampled", "name" => "cpu", "unit" => "microseconds", "startValue" => 0, "endValue" => 3_000,
                           "samples" => [[0], [0, 1], [0, 1]], "weights" => [1_000, 1_000, 1_000] }] }
      end

      private

      def request(id)
        { id: id, at: 1_700_000_000.0, method: "GET", path: "/users", query: "role=Administrator&token=[FILTERED]",
          headers: { "accept" => "application/json", "host" => "localhost:3000" }, endpoint: "GET users#index" }
      end

      def slow_queries
        users = query(USERS, 1_200_000, 440_000, "#{CONTROLLER}:8:in `index'", rows: 162)
        asked = Array.new(162) do |n|
          at = 3_000_000 + (n * 1_080_000)
          [query(EMPLOYEE, at, 23_000, "#{SERIALIZER}:12:in `employee_id'", finding: 0),
           query(TOKENS, at + 300_000, 76_000, "#{SERIALIZER}:16:in `last_login_at'", finding: 1)]
        end
        [users, *asked.flatten]
      end

      def memory
        { total_allocated: 262_503, total_retained: 4, total_allocated_bytes: 16_700_000, total_retained_bytes: 200,
          by_gem: [row("activerecord", 9_000_000, 120_000), row("castellan", 1_000, 4)],
          by_file: [row(SERIALIZER, 8_100_000, 100_000), row(CONTROLLER, 900_000, 20_000)],
          by_line: [row("#{SERIALIZER}:12", 4_100_000, 50_000), row("#{SERIALIZER}:16", 4_000_000, 50_000)],
          by_class: [row("String", 6_000_000, 90_000), row("Hash", 3_000_000, 20_000)] }
      end

      def row(name, bytes, objects)
        { name: name, allocated: objects, retained: 0, allocated_bytes: bytes, retained_bytes: 0 }
      end
    end
  end
end
