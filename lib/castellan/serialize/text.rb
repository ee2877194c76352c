# frozen_string_literal: true

module Castellan
  module Serialize
    # Encodes strings as JSON, with one of three escapings. Frozen.
    #
    #   Text.for(:rails).append(buffer, "a\u2028b")   # buffer << '"a\u2028b"' with the separator escaped
    #
    # `:json` escapes what RFC 8259 requires, like the json gem's `generate`. `:rails` also escapes
    # U+2028 and U+2029, which are line terminators in older JavaScript. `:rails_html` also escapes `<`,
    # `>` and `&`, like ActiveSupport by default.
    class Text
      CONTROLS = (0..0x1f).to_h { |code| [code.chr, format('\u%04x', code)] }
      SHORT = { '"' => '\"', "\\" => "\\\\", "\b" => '\b', "\f" => '\f', "\n" => '\n', "\r" => '\r', "\t" => '\t' }.freeze
      SEPARATORS = { "\u2028" => '\u2028', "\u2029" => '\u2029' }.freeze
      MARKUP = { "<" => '\u003c', ">" => '\u003e', "&" => '\u0026' }.freeze
      private_constant :CONTROLS, :SHORT, :SEPARATORS, :MARKUP

      # @param escape [Symbol] :json, :rails or :rails_html
      # @return [Text]
      def self.for(escape)
        ALL.fetch(escape) { raise ArgumentError, "escape: must be :json, :rails or :rails_html, not #{escape.inspect}" }
      end

      # @return [String] the string in UTF-8
      # @raise [Unwritable]
      def self.utf8(string)
        text = unchecked_utf8(string)
        text.valid_encoding? ? text : raise(Unwritable.new(:utf8, string))
      rescue ::EncodingError # Ruby's own error: unknown character or converter
        raise Unwritable.new(:utf8, string)
      end

      def self.unchecked_utf8(string)
        case string.encoding
        when Encoding::UTF_8, Encoding::US_ASCII then string
        when Encoding::BINARY then string.dup.force_encoding(Encoding::UTF_8)
        else string.encode(Encoding::UTF_8)
        end
      end
      private_class_method :unchecked_utf8

      def initialize(*extra)
        outside = extra.reduce({}, :merge)
        @escapes = CONTROLS.merge(SHORT, outside).freeze
        @pattern = Regexp.union(/["\\\x00-\x1f]/, *outside.keys)
        @outside = outside.freeze
        @outside_pattern = outside.empty? ? nil : Regexp.union(*outside.keys)
        freeze
      end

      # @param buffer [String] UTF-8, to which the JSON is appended
      # @param string [String]
      # @raise [Unwritable] if the string is not UTF-8
      def append(buffer, string)
        text = escaped(string)
        buffer << '"' << text << '"'
      end

      # @param string [String]
      # @return [String] JSON
      # @raise [Unwritable] if the string is not UTF-8
      def quoted(string)
        "\"#{escaped(string)}\""
      end

      # Appends JSON. Escapes separators and markup in place, because they occur only inside its strings.
      # @raise [Unwritable] if the string is empty or not UTF-8
      def append_json(buffer, string)
        raise Unwritable.new(:json, string) unless string.is_a?(String) && !string.empty?

        text = Text.utf8(string)
        text = text.gsub(@outside_pattern, @outside) if @outside_pattern&.match?(text)
        buffer << text
      end

      private

      def escaped(string)
        text = Text.utf8(string)
        text.match?(@pattern) ? text.gsub(@pattern, @escapes) : text
      end

      ALL = { json: new, rails: new(SEPARATORS), rails_html: new(SEPARATORS, MARKUP) }.freeze
      private_constant :ALL
    end
  end
end
