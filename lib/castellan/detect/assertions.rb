# frozen_string_literal: true

module Castellan
  module Detect
    # Adds minitest assertions that fail if a block repeats its queries.
    #
    #   class UsersTest < Minitest::Test
    #     include Castellan::Detect::Assertions
    #
    #     def test_the_index_does_not_repeat_queries
    #       assert_no_repeated_queries { get "/users" }
    #     end
    #
    #     def test_the_index_asks_as_often_for_many_users
    #       assert_queries_constant(->(count) { count.times { User.create! } }) { get "/users" }
    #     end
    #   end
    #
    # Needs `assert(condition, message)`, as in minitest and test-unit, and at least two records in the test
    # data. To annotate the lines to change in GitHub Actions, write `puts
    # Castellan::Detect::Report.github(Castellan::Detect.watch { … })`.
    module Assertions
      # @param repeats [Integer] the number of queries of the same shape that make a finding
      # @param cached [Boolean] whether to fail for repeated queries that ActiveRecord's query cache answered,
      #   too
      # @param known [KnownFindings, String, nil] findings to ignore, or the path of their file
      # @yield the code under test
      # @return [Object] the result of the block
      def assert_no_repeated_queries(message = nil, repeats: 2, cached: false, known: nil)
        result = nil
        findings = Report.repetitions(Detect.watch(repeats: repeats, slow_ms: nil) { result = yield }, cached: cached)
        findings = KnownFindings.of(known).new_among(findings) if known
        assert findings.empty?, lambda {
          [message, "Queries repeat: #{Report.text(findings)}", KnownFindings.advice(findings)].compact.join("\n")
        }
        result
      end

      # @param scale [#call, nil] creates that many more records; without it, the block receives the number
      # @param by [Integer] n, the number of records in the first run; then 2n and 4n
      # @return [Growth]
      # @see Detect.growth
      def assert_queries_constant(scale = nil, message = nil, by: 2, &block)
        growth = Detect.growth(scale: scale, by: by, &block)
        assert growth.constant?, -> { [message, growth.to_s].compact.join("\n") }
        growth
      end
    end
  end
end
