# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # A {Tally} that knows what it costs. To be used for one request in EVERY, because it costs more than one that does not know.
      #
      #   tally = MeteredTally.new
      #   Instrument.record(tally) { User.all.each(&:employee) }
      #   tally.spent_ns   # => 92_000
      #
      # What the instruments take before they tell it is not in that; `rake bench:detect` measures the whole.
      class MeteredTally < Tally
        include Metered

        EVERY = 32

        # Counted as the others are.
        def self.native? = true

        def query(_sql, _name, _started_ns, _duration_ns, _cached, _rows, _binds = nil) = metered { super }
        def enter(_owner, _association) = metered { super }
        def leave = metered { super }
        def loaded(_model, _count, _site) = metered { super }
      end
    end
  end
end
