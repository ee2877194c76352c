# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # The statements of a request that differ in their values only, and the lines that sent them.
      #
      #   group = QueryGroup.all(result.queries).first   # the one that took longest
      #   group.count       # => 162
      #   group.lines       # => [["app/serializers/user_serializer.rb:14:in `employee_id'", 162, 3_860_000], …]
      class QueryGroup
        # @return [Array<Hash>] as {Result#queries} has them
        attr_reader :queries

        # @param queries [Array<Hash>]
        # @return [Array<QueryGroup>] what took longest first
        def self.all(queries)
          queries.group_by { |query| query[:fingerprint] }.each_value.map { |same| new(same) }.sort_by { |group| -group.total_ns }
        end

        # @param queries [Array<Hash>] with one fingerprint
        def initialize(queries)
          @queries = queries
        end

        # @return [String]
        def fingerprint = @queries.first[:fingerprint].to_s

        # @return [String] the text of one of them, without literals unless they were asked for
        def sql = @queries.first[:sql].to_s

        # @return [Integer]
        def count = @queries.size

        # @return [Integer] of those that the ORM's query cache answered
        def cached_count = @queries.count { |query| query[:cached] }

        # @return [Integer]
        def total_ns = @total_ns ||= @queries.sum { |query| query[:duration_ns].to_i }

        # @return [Integer]
        def longest_ns = @queries.map { |query| query[:duration_ns].to_i }.max

        # @return [Integer, nil] nil where no driver said
        def rows
          known = @queries.filter_map { |query| query[:rows] }
          known.sum if known.any?
        end

        # @return [Integer, nil] which finding they belong to
        def finding = @queries.filter_map { |query| query[:finding] }.first

        # @return [Array<(String, Integer, Integer, Array<String>)>] the nearest line of the application, how many it sent, how
        #   long they took, and how the first of them came there
        def lines
          sent = @queries.group_by { |query| query[:frames]&.first }
          sent.map { |line, same| [line, same.size, same.sum { |one| one[:duration_ns].to_i }, Array(same.first[:frames])] }
              .sort_by { |_, _, total, _| -total }
        end

        # @return [String] "SELECT users": what is done, and to which table first
        def label
          words = fingerprint[/\A\s*(\w+)/, 1].to_s.upcase
          table = fingerprint[/\b(?:from|into|update|join)\s+(["`\[\w.]+)/i, 1]
          [words, table&.tr('"`[]', "")].compact.join(" ")
        end
      end
    end
  end
end
