# frozen_string_literal: true

module Castellan
  module Instrument
    # Before 7.2 ActiveRecord does not tell how many rows a statement gave back. Prepended to its adapters there, this adds the number to
    # the notification, while a profile is recorded: what is loaded asynchronously, in another thread, has none.
    #
    #   ActiveRecordRows.attach    # {ActiveRecordInstrument.attach} does, when ActiveRecord is there
    module ActiveRecordRows
      # @return [void]
      def self.attach
        adapter = ActiveRecord::ConnectionAdapters::AbstractAdapter
        adapter.prepend(self) if ActiveRecord.version < Gem::Version.new("7.2") && !adapter.include?(self)
      end

      private

      def log(sql, name = "SQL", binds = [], type_casted_binds = [], statement_name = nil, async: false)
        return super unless ActiveRecordInstrument.attached? && Recording.current&.watches_spans?

        super do |payload|
          answer = yield payload
          payload[:row_count] = RowCount.call(answer)
          answer
        end
      end
    end
  end
end
