# frozen_string_literal: true

module Castellan
  module Write
    # Runs the writes of a request in a transaction, again after a deadlock or serialization failure.
    #
    #   Transaction.run(models) { writer.create(data, "/data") }
    module Transaction
      # The maximum number of runs.
      ATTEMPTS = 4
      WAIT = 0.01 # average seconds before the second run; doubles for each further run
      private_constant :WAIT

      # Marks an error that a callback raised after the commit.
      # The data is written, so the block must not run again, and the error is not the client's.
      module Committed; end

      # Marks an error of the COMMIT itself. If the connection was lost, the data may be written or not.
      module Unconfirmed; end

      module_function

      # @return the result of the block
      # @raise what the block raises, after a rollback
      def run(models)
        attempt = 1
        begin
          models.transaction { yield }
        rescue StandardError => error
          # If the caller began a transaction, the whole transaction has failed.
          raise if error.is_a?(Committed) || attempt == ATTEMPTS || DatabaseError.kind(error) != :busy || models.in_transaction?

          sleep(WAIT * (2**(attempt - 1)) * rand(0.5..1.5))
          attempt += 1
          retry
        end
      end
    end
  end
end
