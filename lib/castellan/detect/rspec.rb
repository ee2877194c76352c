# frozen_string_literal: true

require "castellan/detect"

module Castellan
  module Detect
    # Matchers for RSpec. Requiring this file makes them known to every example.
    #
    #   require "castellan/detect/rspec"   # in spec_helper.rb
    #
    #   expect { get "/users" }.not_to repeat_queries
    #   expect { get "/users" }.not_to repeat_queries.known("spec/known_findings.yml")
    #   expect { get "/users" }.to perform_constant_queries.while_adding { |count| create_list(:user, count) }
    #   expect { |count| User.limit(count).map(&:employee) }.to perform_constant_queries
    #
    # The first needs data: with one record nothing repeats. The second makes it: the block is run with n, 2n and 4n records. When it
    # returns a response or a list, that must grow with them. See {Assertions} for the same in minitest.
    module RSpec
      # @param repeats [Integer] how many statements of one shape make a finding
      def repeat_queries(repeats: 2) = RepeatQueries.new(repeats)

      # @param by [Integer] how many records there are at first
      # @yield [count] makes that many records more, as `while_adding` does
      def perform_constant_queries(by: 2, &scale) = PerformConstantQueries.new(by, scale)

      # What `repeat_queries` makes.
      class RepeatQueries
        def initialize(repeats)
          @repeats = repeats
          @known = nil
        end

        # @param source [KnownFindings, String] or the path of a file; these are none
        def known(source)
          @known = KnownFindings.of(source)
          self
        end

        def matches?(work)
          @findings = Detect.watch(repeats: @repeats, slow_ms: nil, &work).select(&:repeats?)
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

      # What `perform_constant_queries` makes.
      class PerformConstantQueries
        def initialize(by, scale)
          @by = by
          @scale = scale
        end

        # @yield [count] makes that many records more
        def while_adding(&scale)
          @scale = scale
          self
        end

        # @yield [count] as `while_adding` does: `do … end` after the matcher belongs to `to`, which hands it on
        def matches?(work, &scale)
          @growth = Detect.growth(scale: @scale || scale, by: @by, &work)
          @growth.constant?
        end

        # Work that cannot be seen to grow proves nothing, either way.
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
