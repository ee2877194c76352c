# frozen_string_literal: true

module Castellan
  module Serialize
    # Formats dates and times as ISO 8601, times in UTC with milliseconds, like ActiveSupport.
    #
    #   Timestamp.datetime("2024-01-31 10:00:00.123456")     # => "2024-01-31T10:00:00.123Z"
    #   Timestamp.datetime("2024-01-31 12:00:00+02")         # => "2024-01-31T10:00:00.000Z"
    #   Timestamp.date("2024-01-31")                         # => "2024-01-31"
    #
    # Text without a zone is UTC. Further digits are truncated. "infinity", years BC and invalid days raise
    # {Unwritable}.
    module Timestamp
      DAY = /\A(\d{4,6})-(\d\d)-(\d\d)/
      CLOCK = /\G[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?/
      ZONE = /\G(?: ?UTC|Z|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?\z/
      MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].freeze
      private_constant :DAY, :CLOCK, :ZONE, :MONTH_DAYS

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
        day = DAY.match(text) or return
        rest = day.end(0)
        day[0] if day?(day) && (rest == text.size || (CLOCK.match(text, rest) && datetime_text(text)))
      end

      def datetime_text(text)
        day = DAY.match(text) or return
        clock = CLOCK.match(text, day.end(0))
        zone = ZONE.match(text, (clock || day).end(0))
        return unless zone && day?(day) && (clock.nil? || clock?(clock))

        written(day, clock, offset_seconds(zone))
      end

      def written(day, clock, offset)
        return "#{day[0]}T00:00:00.000Z" unless clock || offset != 0

        hour, minute, second = clock ? [clock[1], clock[2], clock[3]] : %w[00 00 00]
        fraction = (clock && clock[4] || "")[0, 3].ljust(3, "0")
        return "#{day[0]}T#{hour}:#{minute}:#{second}.#{fraction}Z" if offset.zero?

        shifted = Time.utc(day[1].to_i, day[2].to_i, day[3].to_i, hour.to_i, minute.to_i, second.to_i) - offset
        "#{shifted.strftime("%Y-%m-%dT%H:%M:%S")}.#{fraction}Z"
      end

      def day?(day)
        month = day[2].to_i
        month.between?(1, 12) && day[3].to_i.between?(1, last_day(day[1].to_i, month))
      end

      def last_day(year, month)
        month == 2 && (year % 4).zero? && (year % 100 != 0 || (year % 400).zero?) ? 29 : MONTH_DAYS[month - 1]
      end

      def clock?(clock)
        clock[1] < "24" && clock[2] < "60" && clock[3] < "60"
      end

      def offset_seconds(zone)
        seconds = zone[2].to_i * 3600 + zone[3].to_i * 60 + zone[4].to_i
        zone[1] == "-" ? -seconds : seconds
      end

      private_class_method :date_text, :datetime_text, :written, :day?, :last_day, :clock?, :offset_seconds
    end
  end
end
