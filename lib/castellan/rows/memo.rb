# frozen_string_literal: true

require "monitor"

module Castellan
  module Rows
    # What a frozen adapter learns of its database once: associations, related adapters, names of tables.
    #
    #   memo = Memo.new
    #   memo.fetch([:association, :roles]) { … }   # runs the block the first time only
    #
    # Keys come from declarations, never from a request. Safe to share between threads.
    class Memo
      def initialize
        @values = {}
        @lock = Monitor.new
      end

      # @param key [Object]
      # @return what the block returned the first time; nil is not kept
      def fetch(key)
        @values[key] || @lock.synchronize { @values[key] ||= yield }
      end
    end
  end
end
