# frozen_string_literal: true

require "strscan"

module Castellan
  module HTTP
    # Parses a media type or range with parameters and weight (RFC 9110 §8.3.1, §12.5.1). Frozen.
    #
    #   MediaType.parse("application/json; charset=utf-8").type         # => "application/json"
    #   MediaType.list("text/html;q=0.5, application/json").map(&:q)    # => [0.5, 1.0]
    #
    # Quoted strings may contain commas and semicolons. A list skips invalid members and reads at most 64.
    MediaType = Struct.new(:type, :parameters, :q) do
      # @param value [String, nil] Content-Type header
      # @return [MediaType, nil] nil if the value is invalid
      def self.parse(value)
        scanner = StringScanner.new(value.to_s.b)
        media_type = read(scanner)
        media_type if scanner.eos?
      end

      # @param value [String] Accept header
      # @return [Array<MediaType>] in the order of the field
      def self.list(value)
        scanner = StringScanner.new(value.b)
        found = []
        until scanner.eos? || found.size == 64
          media_type = read(scanner)
          found << media_type if media_type && (scanner.eos? || scanner.check(/,/))
          scanner.skip(/(?:[^",]|"(?:[^"\\]|\\.)*+"?)*+,?/mn) # rest of an invalid member
        end
        found
      end

      # Reads up to a comma or the end. Returns nil for an invalid media type, with the scanner inside it.
      def self.read(scanner)
        scanner.skip(/[ \t]+/)
        type = scanner.scan(%r{[!\#$%&'*+.^_`|~0-9A-Za-z-]+/[!\#$%&'*+.^_`|~0-9A-Za-z-]+}) or return
        parameters = {}
        while scanner.skip(/[ \t]*;[ \t]*/)
          name = scanner.scan(/[!\#$%&'*+.^_`|~0-9A-Za-z-]+/) or next # "a/b;" is valid (§5.6.6)
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

      # @param other [String] media type, such as "application/json"
      # @return [Boolean] whether this range includes the media type
      def covers?(other)
        type == other || type == "*/*" || (type.end_with?("/*") && other.start_with?(type.delete_suffix("*")))
      end

      # @return [Integer] 0 for */*, 1 for type/*, 2 for type/subtype
      def specificity
        return 0 if type == "*/*"

        type.end_with?("/*") ? 1 : 2
      end
    end
  end
end
