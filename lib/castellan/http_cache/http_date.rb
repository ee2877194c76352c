# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Parses and formats HTTP dates (RFC 9110 §5.6.7) as seconds since 1970.
    #
    #   HTTPDate.parse("Sun, 06 Nov 1994 08:49:37 GMT")   # => 784111777
    #   HTTPDate.parse("0")                               # => nil
    #   HTTPDate.format(784_111_777)                      # => "Sun, 06 Nov 1994 08:49:37 GMT"
    #
    # Accepts the three formats of the RFC, in upper or lower case. A date with a zone other than GMT
    # (RFC 9111 §4.2) or a missing part is invalid.
    module HTTPDate
      DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
      LONG_DAY = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
      MONTHS = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec].each_with_index.to_h { |name, index| [name, index + 1] }.freeze
      MONTH = "(?<month>#{MONTHS.keys.join("|")})".freeze
      CLOCK = '(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)'
      IMF = /\A#{DAY}, (?<day>\d\d) #{MONTH} (?<year>\d{4}) #{CLOCK} GMT\z/i
      RFC850 = /\A#{LONG_DAY}, (?<day>\d\d)-#{MONTH}-(?<year>\d\d) #{CLOCK} GMT\z/i
      ASCTIME = /\A#{DAY} #{MONTH} (?<day>[ \d]\d) #{CLOCK} (?<year>\d{4})\z/i
      private_constant :DAY, :LONG_DAY, :MONTHS, :MONTH, :CLOCK, :IMF, :RFC850, :ASCTIME

      module_function

      # @param text [String, nil]
      # @param now [Numeric, nil] seconds since 1970, for years of two digits; nil: the current time
      # @return [Integer, nil] nil if the date is invalid
      def parse(text, now: nil)
        return unless text && text.ascii_only? && text.size <= 40 # the longest is 33
        return unless (match = IMF.match(text) || RFC850.match(text) || ASCTIME.match(text))

        year = match[:year].to_i
        match[:year].size == 2 ? in_century(year, match, now) : seconds(year, match)
      end

      # @param seconds [Numeric]
      # @return [String]
      def format(seconds)
        Time.at(seconds.to_i).utc.strftime("%a, %d %b %Y %H:%M:%S GMT")
      end

      # A two-digit year more than 50 years ahead is in the past (RFC 9110 §5.6.7).
      def in_century(year, match, now)
        today = Time.at(now || Clock.now.to_i).utc
        year += today.year / 100 * 100
        date = seconds(year, match)
        latest = Time.utc(today.year + 50, today.month, today.day).to_i
        date && date > latest ? seconds(year - 100, match) : date
      end

      def seconds(year, match)
        hour, minute, second = match[:hour].to_i, match[:minute].to_i, match[:second].to_i
        return if hour > 23 || minute > 59 || second > 60

        day = match[:day].to_i
        time = Time.utc(year, MONTHS.fetch(match[:month].capitalize), day, hour, minute, [second, 59].min)
        time.to_i if time.day == day # not the 31st of February
      rescue ArgumentError
        nil
      end
      private_class_method :in_century, :seconds
    end
  end
end
