# frozen_string_literal: true

# What the environment says about the whole of Castellan. `CASTELLAN=off` switches everything off: no instrument
# subscribes, no middleware records, every cache layer is passed by; documents are still rendered, because an
# application that renders with Castellan has no other renderer.
module Castellan
  # @return [Boolean] whether `CASTELLAN=off` is set in the environment. Read at each call, so that a console can switch.
  def self.off?
    ENV["CASTELLAN"] == "off"
  end
end
