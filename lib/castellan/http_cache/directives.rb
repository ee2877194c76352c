# frozen_string_literal: true

require "strscan"

module Castellan
  class HTTPCache
    # Parses the directives of Cache-Control (RFC 9111 §5.2) or of a targeted field (RFC 9213). Frozen.
    #
    #   control = Directives.parse('max-age="60", no-cache="set-cookie"')
    #   control.seconds("max-age")    # => 60
    #   control.fields("no-cache")    # => ["set-cookie"]
    #   control.key?("no-store")      # => false
    #
    # Names are case-insensitive. If a directive is repeated, the first one counts; the field names of
    # `private` and `no-cache` are combined, unless one of them has none and so applies to the whole response.
    # An invalid number of seconds is 0, so that the response is stale (§4.2.1). In a malformed member, such as
    # `max-age=60; private`, the words `private`, `no-store` and `no-cache` count all the same, for the whole
    # response.
    class Directives
      LARGEST = 2**31 # seconds; larger numbers count as this one (RFC 9111 §1.2.2)
      LISTS = %w[private no-cache].freeze
      NUMBERS = %w[max-age s-maxage stale-while-revalidate stale-if-error].freeze
      NAME = /[!#$%&*+\-.^_`|~0-9a-z]+/i # a token, but without a single quote
      FIELD_NAME = /\A[!#$%&'*+\-.^_`|~0-9a-z]+\z/i
      PERSONAL = /(?<![\w-])(?:private|no-store|no-cache)(?![\w-])/i
      MALFORMED = ""
      private_constant :LARGEST, :LISTS, :NUMBERS, :NAME, :FIELD_NAME, :PERSONAL, :MALFORMED

      # @param value [String, Array<String>, nil]
      # @return [Directives]
      def self.parse(value)
        value = HeaderFields.combined(value) if value.is_a?(Array)
        return NONE if value.nil? || value.empty?

        directives = {}
        scan(value.b) { |name, argument| add(directives, name.downcase, argument) }
        new(directives)
      end

      # @param value [String, Array<String>] a targeted field, such as CDN-Cache-Control
      # @return [Directives, nil] nil if it is empty or invalid, and therefore ignored (RFC 9213 §2.1)
      def self.targeted(value)
        members = StructuredField.dictionary(HeaderFields.combined(value))
        return if members.nil? || members.empty?

        new(members.reject { |_, member| member == false }.to_h { |name, member| [name, argument(name, member)] })
      end

      # A value of the wrong type is invalid and not coerced (RFC 9213 §2.1).
      def self.argument(name, member)
        return member.is_a?(String) ? member : true if LISTS.include?(name)

        case member
        when Integer then member.to_s
        when String, Symbol then NUMBERS.include?(name) ? "" : member.to_s
        when true then true
        else ""
        end
      end

      def self.scan(value)
        scanner = StringScanner.new(value)
        until scanner.eos?
          scanner.skip(/[\s,]+/)
          name = scanner.scan(NAME)
          argument = argument_of(scanner) if name && scanner.skip(/=/)
          rest = scanner.scan(/[^,]*/)
          malformed = rest.match?(/\S/)
          argument = junk(name, rest) if name && malformed
          yield name, argument || true if name
          malformed(rest) { |word| yield word, true } if malformed
          argument = nil
        end
      end

      def self.malformed(rest, &)
        yield MALFORMED
        rest.scan(PERSONAL, &)
      end

      # Text after an argument makes a number invalid and a list of names unusable.
      def self.junk(name, rest)
        LISTS.include?(name.downcase) || rest
      end

      # @return [String, nil] nil if it is missing or malformed
      def self.argument_of(scanner)
        quoted = scanner.scan(/"(?:[^"\\]|\\.)*+"/n)
        quoted ? quoted[1..-2].gsub(/\\(.)/n, "\\1") : scanner.scan(NAME)
      end

      def self.add(directives, name, argument)
        known = directives[name]
        if known.nil? then directives[name] = argument
        elsif LISTS.include?(name) then directives[name] = known == true || argument == true ? true : "#{known},#{argument}"
        end
      end
      private_class_method :argument, :scan, :malformed, :junk, :argument_of, :add

      # @param directives [Hash{String => String, true}]
      def initialize(directives)
        @directives = directives.freeze
        freeze
      end

      NONE = new({})

      # @param digits [String]
      # @return [Integer] seconds, at most {LARGEST}
      def self.number(digits)
        digits = digits.sub(/\A0+(?=\d)/, "")
        digits.size > 10 ? LARGEST : [digits.to_i, LARGEST].min
      end

      # @return [Boolean] whether a member has another syntax
      def malformed? = key?(MALFORMED)

      def key?(name)
        @directives.key?(name)
      end

      # @return [Integer, nil] nil if the directive is absent, 0 if its argument is invalid
      def seconds(name)
        argument = @directives[name] or return
        return 0 unless argument.is_a?(String) && argument.match?(/\A\d+\z/)

        Directives.number(argument)
      end

      # @return [Integer, Float, nil] like {#seconds}; infinity if the directive has no argument (`max-stale`)
      def seconds_or_all(name)
        @directives[name] == true ? Float::INFINITY : seconds(name)
      end

      # @return [Array<String>, true, nil] the field names of `private` or `no-cache`; true if it has none
      def fields(name)
        argument = @directives[name] or return
        return true if argument == true

        names = argument.downcase.split(/[\s,]+/).reject(&:empty?)
        names.empty? || !names.all?(FIELD_NAME) || names
      end
    end
  end
end
