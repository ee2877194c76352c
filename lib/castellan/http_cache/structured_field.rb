# frozen_string_literal: true

require "strscan"

module Castellan
  class HTTPCache
    # Strictly parses structured fields (RFC 8941, RFC 9651): lists and dictionaries.
    #
    #   StructuredField.dictionary('max-age=60, public')   # => { "max-age" => 60, "public" => true }
    #   StructuredField.list('"posts", "users";x=1')       # => ["posts", "users"]
    #   StructuredField.dictionary("max-age=60,")          # => nil: the whole field is invalid
    #
    # Strings are Strings, tokens are Symbols, decimals are Floats, inner lists are Arrays. Parameters are
    # parsed and dropped. A byte sequence, date or display string becomes an Array of one String.
    module StructuredField
      KEY = /[a-z*][a-z0-9_\-.*]*/
      NUMBER = /-?\d+(?:\.\d+)?/
      STRING = /"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/
      TOKEN = %r{[A-Za-z*][!\#$%&'*+.^_`|~0-9A-Za-z:/-]*}
      DATE = /@-?\d{1,15}/
      BYTES = %r{:[A-Za-z0-9+/=]*:}
      DISPLAY = /%"(?:[\x20-\x21\x23-\x24\x26-\x7e]|%[0-9a-f]{2})*"/
      LONGEST = 65_536 # characters
      INVALID = Object.new.freeze
      private_constant :KEY, :NUMBER, :STRING, :TOKEN, :BYTES, :DATE, :DISPLAY, :LONGEST, :INVALID

      module_function

      # @param text [String]
      # @return [Hash{String => Object}, nil] nil if the field is invalid
      def dictionary(text)
        parse(text) do |scanner|
          members = {}
          each_member(scanner) do
            key = scanner.scan(KEY) or next false
            value = scanner.skip(/=/) ? item_or_inner_list(scanner) : true
            next false if value.equal?(INVALID) || !parameters(scanner)

            members.delete(key)
            members[key] = value
            true
          end && members
        end
      end

      # @param text [String]
      # @return [Array, nil] nil if the field is invalid
      def list(text)
        parse(text) do |scanner|
          members = []
          each_member(scanner) do
            value = item_or_inner_list(scanner)
            next false if value.equal?(INVALID) || !parameters(scanner)

            members << value
          end && members
        end
      end

      def parse(text)
        return if text.size > LONGEST || !text.ascii_only?

        scanner = StringScanner.new(text)
        scanner.skip(/ +/)
        result = yield scanner
        scanner.skip(/ +/)
        result if result && scanner.eos?
      end

      def each_member(scanner)
        return true if scanner.eos?

        loop do
          return false unless yield

          scanner.skip(/[ \t]+/)
          return true if scanner.eos?
          return false unless scanner.skip(/,[ \t]*/)
          return false if scanner.eos?
        end
      end

      def item_or_inner_list(scanner)
        scanner.skip(/\(/) ? inner_list(scanner) : bare_item(scanner)
      end

      def inner_list(scanner)
        items = []
        loop do
          scanner.skip(/ +/)
          return items if scanner.skip(/\)/)

          item = bare_item(scanner)
          return INVALID if item.equal?(INVALID) || !parameters(scanner) || !scanner.check(/[ )]/)

          items << item
        end
      end

      def bare_item(scanner)
        if (text = scanner.scan(NUMBER)) then number(text)
        elsif (text = scanner.scan(STRING)) then text[1..-2].gsub(/\\(.)/, "\\1")
        elsif (text = scanner.scan(TOKEN)) then text.to_sym
        elsif (text = scanner.scan(BYTES) || scanner.scan(DATE)) then [text]
        elsif (text = scanner.scan(DISPLAY)) then utf8?(text) ? [text] : INVALID
        elsif (text = scanner.scan(/\?[01]/)) then text == "?1"
        else INVALID
        end
      end

      # RFC 9651 §4.2.10
      def utf8?(text) = text.b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8).valid_encoding?

      def number(text)
        whole, fraction = text.delete("-").split(".")
        return INVALID if whole.size > (fraction ? 12 : 15) || fraction.to_s.size > 3

        fraction ? text.to_f : text.to_i
      end

      def parameters(scanner)
        while scanner.skip(/;/)
          scanner.skip(/ +/)
          return false unless scanner.scan(KEY)
          return false if scanner.skip(/=/) && bare_item(scanner).equal?(INVALID)
        end
        true
      end
      private_class_method :parse, :each_member, :item_or_inner_list, :inner_list, :bare_item, :utf8?, :number, :parameters
    end
  end
end
