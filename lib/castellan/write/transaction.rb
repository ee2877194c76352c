# frozen_string_literal: true

module Castellan
  module Write
    # Runs a request's writes in one transaction, and again after a deadlock or a serialization failure.
    #
    #   Transaction.run(models) { writer.create(data, "/data") }
    module Transaction
      # How often the block is run at most.
      ATTEMPTS = 4
      WAIT = 0.01 # seconds before the second attempt; doubled before each further one
      private_constant :WAIT

      # Marks an error that a callback raised after the commit: what was written stays, so it is neither tried again nor the
      # client's mistake.
      module Committed; end

      module_function

      # @return the value of the block
      # @raise what the block raises, after a rollback
      def run(models)
        attempt = 1
        begin
          models.transaction { yield }
        rescue StandardError => error
          # A transaction of the caller's has failed as a whole.
          raise if error.is_a?(Committed) || attempt == ATTEMPTS || DatabaseError.kind(error) != :busy || models.in_transaction?

          sleep(WAIT * (2**(attempt - 1)) * rand(0.5..1.5))
          attempt += 1
          retry
        end
      end
    end
  end
end
