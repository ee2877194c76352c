# frozen_string_literal: true

module Castellan
  module Store
    # Stores nothing: every read is a miss. Use it in development, and to measure what caching saves.
    #
    #   NullStore.new.read_multi(%w[a]) # => {}
    class NullStore
      def read_multi(_keys)
        {}
      end

      def write_multi(_entries, ttl: nil, if_absent: false) # rubocop:disable Lint/UnusedMethodArgument
        Store.check_ttl(ttl)
        []
      end

      def delete_multi(_keys); end

      # @return [Integer] always the amount
      def increment(_key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        amount
      end

      def compare_and_delete(_key, _token)
        false
      end

      def supports?(_feature)
        false
      end
    end
  end
end
