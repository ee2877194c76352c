# frozen_string_literal: true

module Castellan
  module Detect
    # Adds up what an observer costs. Included in one whose methods are wrapped in `metered { super }`.
    #
    #   class MeteredUse < EagerUse
    #     include Metered
    #     def passed(_model, _association) = metered { super }
    #   end
    module Metered
      # @return [Integer]
      attr_reader :spent_ns

      def initialize(...)
        super
        @spent_ns = 0
      end

      private

      def metered
        started = Clock.monotonic_ns
        yield
      ensure
        @spent_ns += Clock.monotonic_ns - started
      end
    end
  end
end
