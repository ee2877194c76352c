# frozen_string_literal: true

module Castellan
  module HTTP
    # HTTP-date (RFC 9110 §5.6.7): writes the one format, reads all three.
    #
    #   Timestamp.format(Time.utc(1994, 11, 6, 8, 49, 37))       # => "Sun, 06 Nov 1994 08:49:37 GMT"
    #   Timestamp.parse("Sunday, 06-Nov-94 08:49:37 GMT")        # => 1994-11-06 08:49:37 UTC
    #   Timestamp.parse("yesterday")                             # => nil
    #
    # Strict, unlike `Time.httpdate` (which raises) and `Time.parse` (which guesses): what is not a date is nil, so that a
    # condition on it is ignored, as §13.1.3 and §13.1.4 ask. The day of the week is not compared with the date.
    module Timestamp
      MONTHS = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec].each_with_index.to_h { |name, index| [name, index + 1] }.freeze
      month = MONTHS.keys.join("|")
      clock = "(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)"
      IMF_FIXDATE = /\A(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d\d) (?<month>#{month}) (?<year>\d{4}) #{clock} GMT\z/
      RFC_850 = /\A(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d\d)-(?<month>#{month})-(?<year>\d\d) #{clock} GMT\z/
      ASCTIME = /\A(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>#{month}) (?<day>[ \d]\d) #{clock} (?<year>\d{4})\z/
      private_constant :MONTHS, :IMF_FIXDATE, :RFC_850, :ASCTIME

      module_function

      # @param time [Time]
      # @return [String] IMF-fixdate; fractions of a second are cut off
      def format(time)
        time.getutc.strftime("%a, %d %b %Y %H:%M:%S GMT")
      end

      # @param value [String, nil] a field value
      # @return [Time, nil] in UTC; nil when it is not an HTTP-date
      def parse(value)
        match = value && (IMF_FIXDATE.match(value) || RFC_850.match(value) || ASCTIME.match(value))
        match && build(year(match[:year]), MONTHS[match[:month]], match[:day].to_i, match)
      rescue ArgumentError # invalid bytes
        nil
      end

      def build(year, month, day, match)
        hour, minute, second = match[:hour].to_i, match[:minute].to_i, match[:second].to_i
        return if hour > 23 || minute > 59 || second > 60

        date = Time.utc(year, month, day)
        date + (((hour * 60) + minute) * 60) + second if date.day == day # Time.utc turns February 30 into March 2
      end

      # Two digits that lie more than 50 years ahead mean the past century.
      def year(digits)
        return digits.to_i if digits.size == 4

        now = Clock.now.utc.year
        year = (now - (now % 100)) + digits.to_i
        year > now + 50 ? year - 100 : year
      end
      private_class_method :build, :year
    end
  end
end
