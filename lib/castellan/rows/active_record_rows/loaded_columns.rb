# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Reads columns of loaded records, all of one class, without casting the values that nobody changed.
      #
      #   columns = LoadedColumns.new(ActiveRecordRows.for(User), users)
      #   columns.rows([:id, :email])   # => [[[1, "ada@example.com"], …], [:integer, :text]]: the driver's values and their coders
      #   columns.column(:seen_at)      # => [[2024-03-01 12:00:00 UTC, …], :datetime]
      #   columns.column(:status)       # => nil, an enum: its values must be read one by one
      #
      # Columns whose attribute was assigned for one of the records are read by `_read_attribute`.
      class LoadedColumns
        # @param records [Array<ActiveRecord::Base>] of exactly the adapter's model
        def initialize(adapter, records)
          @adapter = adapter
          @records = records
        end

        # @param names [Array<Symbol, nil>] columns
        # @return [Array(Array<Array>, Array<Symbol, nil>), nil] a row for each record, and the columns' coders; a column without a
        #   coder has no values. nil if no column can be read as the driver returned it, or without the C extension
        def rows(names)
          return unless defined?(Native)

          plain = names.map { |name| name && plain(name) }
          coders = plain.map { |_, coder| coder }
          rows = Native.loaded_rows(@records, ::ActiveModel::LazyAttributeSet, plain.map { |column, _| column }, coders) or return
          coders.each_with_index { |coder, position| coders[position] = refine_dates(rows, position) if coder == :date }
          [rows, coders]
        end

        # @param name [Symbol]
        # @return [Array(Array<Object>, Symbol), nil] the values and their coder; nil if they must be read one by one
        def column(name)
          column, coder = plain(name)
          case coder
          when nil, :json, :decimal then nil
          when :date then texts(read(column))&.then { |values| [values, :text] }
          when :datetime
            [read(column).map { |time| ::ActiveSupport::TimeWithZone === time ? time.utc : time }, coder] # rubocop:disable Style/CaseEquality
          else [read(column), coder]
          end
        end

        private

        def plain(name)
          return unless @adapter.columns.include?(name) && !@adapter.types.needs_record?(name)

          coder = @adapter.types.coder(name)
          coder && [@adapter.types.name(name), coder]
        end

        # PostgreSQL's driver returns dates as objects.
        def refine_dates(rows, position)
          return :date unless rows.any? { |row| row[position].respond_to?(:iso8601) }

          values = texts(rows.map { |row| row[position] }) or return
          rows.each_with_index { |row, index| row[position] = values[index] }
          :text
        end

        # @return [Array<String, nil>, nil] nil if one is no date, as infinity
        def texts(dates)
          dates.map { |date| date&.iso8601 } if dates.all? { |date| date.nil? || date.instance_of?(::Date) }
        end

        # A block for missing attributes in each read would dominate the cost, so only nil is checked.
        def read(column)
          @records.map do |record|
            value = record._read_attribute(column)
            value.nil? && !record.has_attribute?(column) ? missing(record, column) : value
          end
        end

        def missing(record, column)
          raise ::ActiveModel::MissingAttributeError, "missing attribute '#{column}' for #{record.class}"
        end
      end
    end
  end
end
