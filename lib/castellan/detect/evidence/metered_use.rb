# frozen_string_literal: true

module Castellan
  module Detect
    class Evidence
      # An {EagerUse} that adds up what it costs.
      #
      #   use = MeteredUse.new
      #   Instrument.record(use) { User.preload(:posts).to_a }
      #   use.spent_ns   # => 92_000
      class MeteredUse < EagerUse
        include Metered

        def preloaded(_model, _association, _records) = metered { super }
        def passed(_model, _association) = metered { super }
        def used(_model, _association, _how) = metered { super }
      end
    end
  end
end
