# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The model's current connection: the caller's own where it holds one (so its transaction is ours), otherwise one
      # that goes back when the block ends. ActiveRecord 7.2 has `with_connection`; before it, a connection stays leased.
      #
      #   ConnectionAccess.new(User).lease { |connection| connection.adapter_name }
      class ConnectionAccess
        GIVES_BACK = ::ActiveRecord::ConnectionHandling.method_defined?(:with_connection)
        private_constant :GIVES_BACK

        def initialize(model)
          @model = model
          freeze
        end

        def lease(&block)
          GIVES_BACK ? @model.with_connection(&block) : yield(@model.connection)
        end
      end
    end
  end
end
