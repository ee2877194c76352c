# frozen_string_literal: true

require "date"

module Castellan
  module Serialize
    # Formats dates and times as ISO 8601, times in UTC with milliseconds, like ActiveSupport.
    #
    #   Timestamp.datetime("2024-01-31 10:00:00.123456")     # => "2024-01-31T10:00:00.123Z"
    #   Timestamp.datetime("2024-01-31 12:00:00+02")         # => "2024-01-31T10:00:00.000Z"
    #   Timestamp.date("2024-01-31")                         # => "2024-01-31"
    #
    # Strings without a zone are UTC. Digits after the milliseconds are truncated. "infinity", years
    # BC and invalid days raise {Unwritable}.
    module Timestamp
      DAY = /\A((\d{4,6})-(\d\d)-(\d\d))/
      CLOCK = /[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?/
      ZONE = /(?: ?UTC|Z|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?\z/
      MOMENT = /#{DAY}(?:#{CLOCK})?#{ZONE}/
      DATE = /#{DAY}(?:\z|#{CLOCK})/
      private_constant :DAY, :CLOCK, :ZONE, :MOMENT, :DATE

      module_function

      # @param value [String, Date, Time]
      # @raise [Unwritable]
      def date(value)
        case value
        when String then date_text(value) || raise(Unwritable.new(:date, value))
        else value.respond_to?(:strftime) ? value.strftime("%Y-%m-%d") : raise(Unwritable.new(:date, value))
        end
      end

      # @param value [String, Time, DateTime]
      # @raise [Unwritable]
      def datetime(value)
        case value
        when String then datetime_text(value) || raise(Unwritable.new(:datetime, value))
        when Time then value.getutc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
        else value.respond_to?(:to_time) ? datetime(value.to_time) : raise(Unwritable.new(:datetime, value))
        end
      end

      def date_text(text)
        found = DATE.match(text) or return
        found[1] if day?(found) && (found[5].nil? || datetime_text(text))
      end

      def datetime_text(text)
        found = MOMENT.match(text) or return
        written(found, offset_seconds(found)) if day?(found) && clock?(found)
      end

      def written(found, offset)
        return "#{found[1]}T00:00:00.000Z" unless found[5] || offset != 0

        fraction = (found[8] || "")[0, 3].ljust(3, "0")
        return "#{found[1]}T#{found[5]}:#{found[6]}:#{found[7]}.#{fraction}Z" if offset.zero?

        shifted = Time.utc(*found.values_at(2, 3, 4, 5, 6, 7).map(&:to_i)) - offset
        "#{shifted.strftime("%Y-%m-%dT%H:%M:%S")}.#{fraction}Z"
      end

      def day?(found) = Date.valid_date?(*found.values_at(2, 3, 4).map(&:to_i), Date::GREGORIAN)

      def clock?(found)
        found[5].nil? || (found[5] < "24" && found[6] < "60" && found[7] < "60")
      end

      def offset_seconds(found)
        return 0 unless found[9]

        seconds = found[10].to_i * 3600 + found[11].to_i * 60 + found[12].to_i
        found[9] == "-" ? -seconds : seconds
      end

      private_class_method :date_text, :datetime_text, :written, :day?, :clock?, :offset_seconds
    end
  end
end
