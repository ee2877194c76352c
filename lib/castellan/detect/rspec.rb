# frozen_string_literal: true

require_relative "../detect"

module Castellan
  module Detect
    # Adds RSpec matchers for repeated queries to every example.
    #
    #   require "castellan/detect/rspec"   # in spec_helper.rb
    #
    #   expect { get "/users" }.not_to repeat_queries
    #   expect { get "/users" }.not_to repeat_queries.known("spec/known_findings.yml")
    #   expect { get "/users" }.to perform_constant_queries.while_adding { |count| create_list(:user, count) }
    #   expect { |count| User.limit(count).map(&:employee) }.to perform_constant_queries
    #
    # `repeat_queries` needs at least two records in the test data. `perform_constant_queries` runs the block
    # with n, 2n and 4n records; if the block returns a response or a list, its size must grow with them. For
    # minitest, see {Assertions}.
    module RSpec
      # @param repeats [Integer] the number of queries of the same shape that make a finding
      # @param cached [Boolean] whether to count repeated queries that ActiveRecord's query cache answered,
      #   too
      def repeat_queries(repeats: 2, cached: false) = RepeatQueries.new(repeats, cached)

      # @param by [Integer] n, the number of records in the first run
      # @yield [count] creates that many more records, like `while_adding`
      def perform_constant_queries(by: 2, &scale) = PerformConstantQueries.new(by, scale)

      class RepeatQueries
        def initialize(repeats, cached)
          @repeats = repeats
          @cached = cached
          @known = nil
        end

        # @param source [KnownFindings, String] findings to ignore, or the path of their file
        def known(source)
          @known = KnownFindings.of(source)
          self
        end

        def matches?(work)
          @findings = Report.repetitions(Detect.watch(repeats: @repeats, slow_ms: nil, &work), cached: @cached)
          @findings = @known.new_among(@findings) if @known
          @findings.any?
        end

        def supports_block_expectations? = true
        def supports_value_expectations? = false
        def description = "repeat queries"
        def failure_message = "expected queries to repeat, but none did"

        def failure_message_when_negated
          "expected no queries to repeat: #{Report.text(@findings)}\n#{KnownFindings.advice(@findings)}"
        end
      end

      class PerformConstantQueries
        def initialize(by, scale)
          @by = by
          @scale = scale
        end

        # @yield [count] creates that many more records
        def while_adding(&scale)
          @scale = scale
          self
        end

        # @yield [count] creates that many more records. Ruby passes a `do … end` block to `to`, which passes
        #   it on to here
        def matches?(work, &scale)
          @growth = Detect.growth(scale: @scale || scale, by: @by, &work)
          @growth.constant?
        end

        # If the result does not grow, neither expectation is met.
        def does_not_match?(work, &scale)
          matches?(work, &scale)
          @growth.slopes.any?
        end

        def supports_block_expectations? = true
        def supports_value_expectations? = false
        def description = "perform as many queries for many records as for few"
        def failure_message = "expected as many queries for many records as for few: #{@growth}"
        def failure_message_when_negated = "expected more queries for more records: #{@growth}"
      end
      private_constant :RepeatQueries, :PerformConstantQueries

      ::RSpec.configure { |config| config.include(self) } if defined?(::RSpec) && ::RSpec.respond_to?(:configure)
    end
  end
end
