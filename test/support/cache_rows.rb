# frozen_string_literal: true

require_relative "cached_application"

module Castellan
  # Defines tests as rows of a table: what a cache does with the second of two equal requests.
  #
  #   class StoringTest < Minitest::Test
  #     extend Castellan::CacheRows
  #     rows "RFC 9111 §3",
  #          ["no-store is not stored", { "cache-control" => "max-age=60, no-store" }, :miss],
  #          ["404 is stored", { "cache-control" => "max-age=60" }, :hit, { status: 404 }]
  #   end
  #
  # A row has a sentence, the header fields of the response (or a Proc that receives the world, for dates),
  # the outcome, and options: status, method, request (header fields of both requests), second (header fields
  # of the second request), after (seconds between the requests), cache (options of the cache), with (a block
  # of assertions that receives the world and both responses). Outcomes are :hit, :miss (a full request),
  # :validate (a conditional request) and :timeout (504).
  module CacheRows
    def rows(section, *rows)
      rows.each do |sentence, fields, outcome, options|
        define_method("test_#{section}: #{sentence}") { check_row(fields, outcome, **(options || {})) }
      end
    end

    def self.extended(test)
      test.include(Checks)
    end

    module Checks
      private

      def check_row(fields, outcome, status: 200, method: "GET", request: {}, second: nil, after: 3, cache: {}, body: "content", with: nil)
        world = Castellan::CachedApplication.new(**cache)
        given = fields.is_a?(Proc) ? fields.call(world) : fields
        empty = method == "HEAD" || status == 204
        world.answer { [status, given.dup, empty ? [] : [body]] }
        first = world.call(method, "/row", request)
        world.later(after)
        other = world.call(method, "/row", second || request)
        assert_equal outcome, outcome_of(world, other), other.note
        assert_equal first.body, other.body if outcome == :hit && other.status == first.status
        with&.call(self, first, other)
      end

      def outcome_of(world, response)
        return :timeout if response.note.include?("detail=")
        return :hit if world.requests.size == 1

        again = world.requests.last
        again.key?("HTTP_IF_NONE_MATCH") || again.key?("HTTP_IF_MODIFIED_SINCE") ? :validate : :miss
      end
    end
  end
end
