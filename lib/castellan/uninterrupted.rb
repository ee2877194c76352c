# frozen_string_literal: true

module Castellan
  # Runs a block that Timeout, Thread#raise and Thread#kill interrupt only after it has ended.
  #
  #   Uninterrupted.call { @mutex.synchronize { @flights.delete(key) } }
  module Uninterrupted
    NEVER = { Object => :never }.freeze # a literal would call Object.hash, where an interrupt may come first
    private_constant :NEVER

    # @yieldreturn [Object]
    # @return [Object] what the block returned
    def self.call(&) = Thread.handle_interrupt(NEVER, &)
  end
end
