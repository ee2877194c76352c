# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Groups the statements of a request by fingerprint, with the lines that sent them.
      #
      #   group = QueryGroup.all(result.queries).first   # the group with the longest total time
      #   group.count       # => 162
      #   group.lines       # => [["app/user_serializer.rb:14:in `employee_id'", 162, 3_860_000, […]], …]
      class QueryGroup
        # @return [Array<Hash>] as in {Result#queries}
        attr_reader :queries

        # @param queries [Array<Hash>]
        # @return [Array<QueryGroup>] the longest total time first
        def self.all(queries)
          queries.group_by { |query| query[:fingerprint] }.each_value.map { |same| new(same) }.sort_by { |group| -group.total_ns }
        end

        # @param queries [Array<Hash>] with the same fingerprint
        def initialize(queries)
          @queries = queries
        end

        # @return [String]
        def fingerprint = @queries.first[:fingerprint].to_s

        # @return [String] the SQL of the first query; with literal values only if they were recorded
        def sql = @queries.first[:sql].to_s

        # @return [Integer]
        def count = @queries.size

        # @return [Integer] how many queries the ORM's query cache answered
        def cached_count = @queries.count { |query| query[:cached] }

        # @return [Integer]
        def total_ns = @total_ns ||= @queries.sum { |query| query[:duration_ns].to_i }

        # @return [Integer]
        def longest_ns = @queries.map { |query| query[:duration_ns].to_i }.max

        # @return [Integer, nil] returned rows; nil if the driver does not report them
        def rows
          known = @queries.filter_map { |query| query[:rows] }
          known.sum if known.any?
        end

        # @return [Integer, nil] the index of their finding
        def finding = @queries.filter_map { |query| query[:finding] }.first

        # @return [Array<(String, Integer, Integer, Array<String>)>] for each call site the nearest
        #   application frame, the number of queries, the total nanoseconds and the frames of the first query;
        #   the longest total first
        def lines
          sent = @queries.group_by { |query| query[:frames]&.first }
          sent.map { |line, same| [line, same.size, same.sum { |one| one[:duration_ns].to_i }, Array(same.first[:frames])] }
              .sort_by { |_, _, total, _| -total }
        end

        # @return [String] the verb and the first table: "SELECT users"
        def label
          words = fingerprint[/\A\s*(\w+)/, 1].to_s.upcase
          table = fingerprint[/\b(?:from|into|update|join)\s+(["`\[\w.]+)/i, 1]
          [words, table&.tr('"`[]', "")].compact.join(" ")
        end
      end
    end
  end
end
