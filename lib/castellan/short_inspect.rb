# frozen_string_literal: true

module Castellan
  # Inspects an object by its class. Ruby before 3.3 inspects the receiver for the message of a NoMethodError,
  # which would take seconds for a cache and write stored bytes into the log.
  #
  #   Store::MemoryStore.new.inspect # => "#<Castellan::Store::MemoryStore>"
  module ShortInspect
    # @return [String]
    def inspect = "#<#{self.class}>"
  end
end
