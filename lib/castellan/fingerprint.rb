# frozen_string_literal: true

module Castellan
  begin
    require "castellan/castellan_ext"
  rescue LoadError
    nil # without a C compiler the regular expressions below read every text: the same answer, slower
  end

  # The shape of a statement: its text without literals, comments, query tags and the length of its lists, in small letters.
  #
  #   Fingerprint.of(%q(SELECT * FROM "users" WHERE "users"."id" IN (1, 2, 3) /*action='index'*/))
  #   # => "select * from users where users.id in (?)"
  #
  # No literal is kept, not even where the text is broken: an unterminated string or comment runs to the end, and where
  # a backslash before a quote leaves open which dialect was meant, everything between the first and the last quote
  # counts as one literal. A text that cannot be read counts under a digest of itself. Never raises.
  #
  # Read by the C extension where that is built (ext/castellan/fingerprint.c), else and for what is hard to read by the
  # regular expressions here, which it is tested against.
  #
  # It is not a parser: double quotes, backticks and brackets mean identifiers, as in standard SQL; a MySQL that takes
  # double quotes for strings writes its literals into the fingerprint.
  module Fingerprint
    TOKEN = %r{
      (?<string>(?:\b[exbn]|\b_\w+\s*)?'[^']*+(?:''[^']*+)*+(?:'|\z)) |
      (?<dollar>\$(?<tag>[a-z_]\w*|)\$.*?(?:\$\k<tag>\$|\z)) |
      (?<comment>/\*.*?(?:\*/|\z)|--[^\n]*+|\#\ [^\n]*+) |
      (?<identifier>"[^"]*+"|`[^`]*+`|\[[a-z_]\w*+\]) |
      (?<bind>\$\d++|\?\d++|(?<![:\w]):[a-z_]\w*+) |
      (?<number>(?<![\w.])(?:0x\h++|\d++(?:\.\d*+)?(?:e[+-]?\d++)?|\.\d++(?:e[+-]?\d++)?)\b) |
      (?<boolean>\b(?:true|false)\b) |
      (?<space>\s++)
    }mix
    LIST = /\b(in|any) ?\((?:array\[)?\s*(?:\?(?: ?, ?\?)*+|\((?:\?(?: ?, ?\?)*+)\)(?: ?, ?\((?:\?(?: ?, ?\?)*+)\))*+)\]?\s*\)/
    VALUES = /\bvalues ?\((?:[^()]|\([^()]*\))*+\)(?: ?, ?\((?:[^()]|\([^()]*\))*+\))*+/
    SIGNED = /(?<=[=<>(,] |[=<>(,]|between |and |limit )[-+] ?\?/
    LONGEST = 1 << 20
    KEPT = 2_000
    @texts = {}

    class << self
      # @param sql [String]
      # @return [String] frozen; the same object for a text that was seen lately
      def of(sql)
        shape_of(sql) || @texts[sql] || keep(sql, compute(sql))
      end

      private

      # Only what the regular expressions read is kept: the extension is quicker than a text is put into a hash.
      # Bounded by starting anew: what is asked often is back after one request.
      def keep(sql, fingerprint)
        @texts = {} if @texts.size >= KEPT
        @texts[sql] = fingerprint
      end

      def compute(sql)
        sql.bytesize > LONGEST ? digest(sql) : shape_in_ruby(sql)
      rescue ArgumentError, ::EncodingError, NoMethodError, TypeError, RegexpError
        digest(sql)
      end

      # @return [String, nil] nil for what is left to {shape_in_ruby}
      if Castellan.const_defined?(:NativeFingerprint)
        include NativeFingerprint

        private :shape_of
      else
        def shape_of(_sql) = nil
      end

      def shape_in_ruby(sql) = collapse(literals_out(readable(sql))).freeze

      def readable(sql)
        text = sql.valid_encoding? ? sql : sql.dup.force_encoding(Encoding::UTF_8).scrub("?")
        text.include?("\\'") ? text.sub(/'.*'/m, "?") : text
      end

      def literals_out(text)
        text.gsub(TOKEN) { |token| replacement(token, Regexp.last_match) }.downcase.squeeze(" ").strip.delete_suffix(";")
      end

      def replacement(token, match)
        if match[:space] || match[:comment] then " "
        elsif match[:identifier] then token[1..-2]
        else "?"
        end
      end

      def collapse(text)
        text = text.gsub(SIGNED, "?") if text.match?(/[-+] ?\?/)
        text = text.gsub(LIST, '\1 (?)') if text.match?(/\b(?:in|any) ?\(/)
        text.include?("values") ? text.gsub(VALUES, "values (?)") : text
      end

      def digest(sql)
        require "digest"
        -"unreadable:#{Digest::SHA256.hexdigest(sql.to_s.b)[0, 16]}"
      end
    end
  end
end
