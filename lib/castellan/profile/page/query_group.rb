# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Groups the statements of a request by fingerprint, with the lines that sent them.
      #
      #   group = QueryGroup.all(result.queries).first   # the longest total time
      #   group.count       # => 162
      #   group.lines       # => [["app/user_serializer.rb:14:in `employee_id'", 162, 3_860_000, […]], …]
      class QueryGroup
        # @return [Array<Hash>] as in {Result#queries}
        attr_reader :queries

        # @param queries [Array<Hash>]
        # @return [Array<QueryGroup>] longest total time first
        def self.all(queries)
          queries.group_by { |query| query[:fingerprint] }.each_value.map { |same| new(same) }.sort_by { |group| -group.total_ns }
        end

        # @param queries [Array<Hash>] with one fingerprint
        def initialize(queries)
          @queries = queries
        end

        # @return [String]
        def fingerprint = @queries.first[:fingerprint].to_s

        # @return [String] SQL of the first query; with literal values only if they were recorded
        def sql = @queries.first[:sql].to_s

        # @return [Integer]
        def count = @queries.size

        # @return [Integer] number that the ORM's query cache answered
        def cached_count = @queries.count { |query| query[:cached] }

        # @return [Integer]
        def total_ns = @total_ns ||= @queries.sum { |query| query[:duration_ns].to_i }

        # @return [Integer]
        def longest_ns = @queries.map { |query| query[:duration_ns].to_i }.max

        # @return [Integer, nil] rows returned; nil if the driver does not report them
        def rows
          known = @queries.filter_map { |query| query[:rows] }
          known.sum if known.any?
        end

        # @return [Integer, nil] index of their finding
        def finding = @queries.filter_map { |query| query[:finding] }.first

        # @return [Array<(String, Integer, Integer, Array<String>)>] per call site: nearest application frame,
        #   number of queries, total nanoseconds, frames of the first query; longest total first
        def lines
          sent = @queries.group_by { |query| query[:frames]&.first }
          sent.map { |line, same| [line, same.size, same.sum { |one| one[:duration_ns].to_i }, Array(same.first[:frames])] }
              .sort_by { |_, _, total, _| -total }
        end

        # @return [String] "SELECT users": verb and first table
        def label
          words = fingerprint[/\A\s*(\w+)/, 1].to_s.upcase
          table = fingerprint[/\b(?:from|into|update|join)\s+(["`\[\w.]+)/i, 1]
          [words, table&.tr('"`[]', "")].compact.join(" ")
        end
      end
    end
  end
end
