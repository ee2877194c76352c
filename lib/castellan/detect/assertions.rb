# frozen_string_literal: true

module Castellan
  module Detect
    # For tests: a block must not repeat its queries.
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
    # Needs `assert(condition, message)`, which minitest and test-unit have, and data: with one record nothing repeats.
    # `known:` leaves out findings that somebody decided to live with. In GitHub Actions,
    # `puts Castellan::Detect::Report.github(Castellan::Detect.watch { … })`
    # marks the lines to change.
    module Assertions
      # @param repeats [Integer] how many statements of one shape make a finding
      # @param known [KnownFindings, String, nil] or the path of its file
      # @return what the block returns
      def assert_no_repeated_queries(message = nil, repeats: 2, known: nil)
        result = nil
        findings = Detect.watch(repeats: repeats, slow_ms: nil) { result = yield }.select(&:repeats?)
        findings = KnownFindings.of(known).new_among(findings) if known
        assert findings.empty?, lambda {
          [message, "Queries repeat: #{Report.text(findings)}", KnownFindings.advice(findings)].compact.join("\n")
        }
        result
      end

      # @param scale [#call, nil] makes that many records more; without it the block is told for how many records to work
      # @param by [Integer] how many are made at first
      # @return [Growth] what grew
      # @see Detect.growth
      def assert_queries_constant(scale = nil, message = nil, by: 2, &block)
        growth = Detect.growth(scale: scale, by: by, &block)
        assert growth.constant?, -> { [message, growth.to_s].compact.join("\n") }
        growth
      end
    end
  end
end
