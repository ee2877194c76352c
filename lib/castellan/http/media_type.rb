# frozen_string_literal: true

require "strscan"

module Castellan
  module HTTP
    # A media type or range with its parameters and weight (RFC 9110 §8.3.1, §12.5.1). Frozen.
    #
    #   MediaType.parse("application/json; charset=utf-8").type         # => "application/json"
    #   MediaType.list("text/html;q=0.5, application/json").map(&:q)    # => [0.5, 1.0]
    #
    # Quoted strings may hold commas and semicolons. A member that cannot be read is left out of a list; no more than 64 are read.
    MediaType = Struct.new(:type, :parameters, :q) do
      # @param value [String, nil] a Content-Type
      # @return [MediaType, nil] nil when it cannot be read
      def self.parse(value)
        scanner = StringScanner.new(value.to_s.b)
        media_type = read(scanner)
        media_type if scanner.eos?
      end

      # @param value [String] an Accept field
      # @return [Array<MediaType>] in the order of the field
      def self.list(value)
        scanner = StringScanner.new(value.b)
        found = []
        until scanner.eos? || found.size == 64
          media_type = read(scanner)
          found << media_type if media_type && (scanner.eos? || scanner.check(/,/))
          scanner.skip(/(?:[^",]|"(?:[^"\\]|\\.)*+"?)*+,?/mn) # the rest of a member that could not be read
        end
        found
      end

      # What stands before a comma or the end; nil (and the scanner wherever it stopped) when that is no media type.
      def self.read(scanner)
        scanner.skip(/[ \t]+/)
        type = scanner.scan(%r{[!\#$%&'*+.^_`|~0-9A-Za-z-]+/[!\#$%&'*+.^_`|~0-9A-Za-z-]+}) or return
        parameters = {}
        while scanner.skip(/[ \t]*;[ \t]*/)
          name = scanner.scan(/[!\#$%&'*+.^_`|~0-9A-Za-z-]+/) or next # "a/b;" is allowed (§5.6.6)
          value = read_value(scanner) or return
          parameters[name.downcase] = value
        end
        scanner.skip(/[ \t]+/)
        weighted(type.downcase, parameters)
      end

      def self.read_value(scanner)
        scanner.skip(/=/) or return
        quoted = scanner.scan(/"(?:[^"\\]|\\.)*+"/mn)
        return quoted[1..-2].gsub(/\\(.)/mn, "\\1") if quoted

        scanner.scan(/[!\#$%&'*+.^_`|~0-9A-Za-z-]+/)
      end

      def self.weighted(type, parameters)
        weight = parameters.delete("q")
        return if weight && !weight.match?(/\A(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\z/)

        new(type.freeze, parameters.freeze, weight ? weight.to_f : 1.0).freeze
      end
      private_class_method :read, :read_value, :weighted

      # @return [Boolean] whether this range covers a type, e.g. "application/json"
      def covers?(other)
        type == other || type == "*/*" || (type.end_with?("/*") && other.start_with?(type.delete_suffix("*")))
      end

      # @return [Integer] 0 for any, 1 for any subtype, 2 for a type
      def specificity
        return 0 if type == "*/*"

        type.end_with?("/*") ? 1 : 2
      end
    end
  end
end
