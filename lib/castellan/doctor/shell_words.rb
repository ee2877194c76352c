# frozen_string_literal: true

require "strscan"

module Castellan
  module Doctor
    # Splits a command as Bash does, with the `$'…'` that Chromium writes when a value holds a quote, which Shellwords does not know.
    #
    #   ShellWords.split(%q(curl 'https://app.example/' -H $'x: it\'s'))   # => ["curl", "https://app.example/", "-H", "x: it's"]
    #
    # Expands nothing: no variables, no globs. Not for the form that browsers copy for Windows' cmd.
    class ShellWords
      ESCAPES = { "n" => "\n", "t" => "\t", "r" => "\r" }.freeze
      private_constant :ESCAPES

      # @param command [String]
      # @return [Array<String>]
      # @raise [Unwell] naming what is not closed
      def self.split(command)
        new(command).call
      end

      def initialize(command)
        @scanner = StringScanner.new(command)
        @words = []
      end

      def call
        step until @scanner.eos?
        finish
        @words
      end

      private

      def step
        if @scanner.skip(/\\\r?\n/) then nil
        elsif @scanner.skip(/\s+/) then finish
        else add(part)
        end
      end

      def part
        if @scanner.skip(/\$'((?:[^'\\]|\\.)*)'/m) then unescape(@scanner[1])
        elsif @scanner.skip(/'([^']*)'/) then @scanner[1]
        elsif @scanner.skip(/"((?:[^"\\]|\\.)*)"/m) then @scanner[1].gsub(/\\([$`"\\\n])/, '\1')
        elsif @scanner.skip(/\\(.)/m) then @scanner[1]
        else @scanner.scan(/[^\s'"\\$]+|\$/) || unclosed
        end
      end

      def add(text) = (@word ||= +"") << text

      def finish
        @words << @word if @word
        @word = nil
      end

      def unescape(text)
        text.gsub(/(?<utf16>(?:\\u\h{4})+)|\\x(?<hex>\h{1,2})|\\(?<other>.)/m) do
          match = Regexp.last_match
          if match[:utf16] then characters(match[:utf16])
          elsif match[:hex] then [match[:hex].hex].pack("U")
          else ESCAPES.fetch(match[:other], match[:other])
          end
        end
      end

      # The browser's JavaScript writes a character beyond 16 bits as two.
      def characters(escapes)
        escapes.scan(/\h{4}/).map(&:hex).pack("n*").force_encoding(Encoding::UTF_16BE).encode(Encoding::UTF_8)
      end

      def unclosed
        raise Unwell, "the curl command cannot be read: a quote is not closed at #{@scanner.rest[0, 40].inspect}; " \
                      "copy it as cURL (bash), and put it between quotes that it does not hold itself"
      end
    end
  end
end
