# frozen_string_literal: true

require "json"
require "zlib"

module Castellan
  module Profile
    # Stores results in any {Store}: memory, files that the processes of a machine share, or Redis.
    #
    #   results = Results.new(Store::MemoryStore.new(max_bytesize: 64_000_000), ttl: 86_400)
    #   results.add(result)           # => true if it was stored
    #   results.latest(limit: 20)     # => [ResultSummary], newest first
    #   results.find(id)              # => Result or nil
    #
    # A result (deflated JSON) and its summary are two entries, numbered by a counter, so the limits of the
    # store apply. Never raises {StoreError}: a result that cannot be written or read counts as absent.
    class Results
      PREFIX = "castellan:profile:"
      COUNTER = "#{PREFIX}count".freeze
      MOST_LOOKED_AT = 500
      ID = /\A[\w-]{1,64}\z/
      private_constant :PREFIX, :COUNTER, :ID

      # @param store [Object] see {Store}
      # @param ttl [Numeric] seconds to keep a result
      # @param log [#call, nil] receives a message if the store fails or a result is too large
      def initialize(store, ttl: 86_400, log: nil)
        Castellan::Store.check_ttl(ttl)
        @store = store
        @ttl = ttl
        @log = log
        freeze
      end

      # @param result [Result]
      # @return [Boolean] whether it was stored
      def add(result)
        rescuing(false) do
          kept = @store.write_multi({ key(result.id) => Zlib.deflate(JSON.generate(result), Zlib::BEST_SPEED) }, ttl: @ttl).any?
          @log&.call("a profile of #{result.endpoint} was too large for the store and is not kept") unless kept
          kept && list(result)
        end
      end

      # @param id [String] may be client input
      # @return [Result, nil]
      def find(id)
        return unless ID.match?(id.to_s)

        bytes = rescuing({}) { @store.read_multi([key(id)]) }[key(id)]
        readable { Result.from_h(JSON.parse(Zlib.inflate(bytes))) } if bytes
      end

      # @param limit [Integer]
      # @param after [Integer, nil] only summaries with a greater number
      # @param endpoint [String, nil] see {Result#endpoint}
      # @param status [Integer, String, nil] 404, "4xx", or "none" for requests without a response
      # @return [Array<ResultSummary>] newest first; searches the last MOST_LOOKED_AT results
      def latest(limit: 50, after: nil, endpoint: nil, status: nil)
        rescuing([]) do
          found = summaries(after.to_i).select { |one| (endpoint.nil? || one.endpoint == endpoint) && status?(one, status) }
          found.first(limit)
        end
      end

      # @return [Array<String>] the endpoints of the latest results, sorted
      def endpoints = rescuing([]) { summaries(0).filter_map(&:endpoint).uniq.sort }

      private

      def list(result)
        number = @store.increment(COUNTER)
        @store.write_multi({ line(number) => JSON.generate(result.summary.to_h) }, ttl: @ttl)
        true
      end

      def summaries(after)
        last = @store.read_multi([COUNTER])[COUNTER].to_i
        numbers = [after + 1, last - MOST_LOOKED_AT + 1, 1].max..last
        keys = numbers.to_h { |number| [line(number), number] }
        found = @store.read_multi(keys.keys)
        keys.filter_map { |key, number| summary(found[key], number) }.reverse
      end

      def summary(bytes, number)
        readable { ResultSummary.new(**JSON.parse(bytes, symbolize_names: true).slice(*ResultSummary.members), number: number) } if bytes
      end

      # Entries of another version of this gem, and overwritten entries, count as absent.
      def readable
        yield
      rescue Zlib::Error, JSON::ParserError, ArgumentError, NoMethodError, TypeError, EncodingError
        nil
      end

      def status?(summary, status)
        case status
        when nil, "" then true
        when "none" then summary.status.nil?
        when /\A(\d)xx\z/ then summary.status.to_i / 100 == Regexp.last_match(1).to_i
        else summary.status.to_s == status.to_s
        end
      end

      def key(id) = "#{PREFIX}result:#{id}"

      def line(number) = "#{PREFIX}##{number}"

      def rescuing(instead)
        yield
      rescue StoreError => error
        @log&.call("the store of profiles failed: #{error.message}")
        instead
      end
    end
  end
end
