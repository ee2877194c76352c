# frozen_string_literal: true

module Castellan
  # The shape of a statement: its text without literals, comments, query tags and the length of its lists, in lower case.
  #
  #   Fingerprint.of(%q(SELECT * FROM "users" WHERE "users"."id" IN (1, 2, 3) /*action='index'*/))
  #   # => "select * from users where users.id in (?)"
  #
  # Names that a program numbers (aliases `a17`, savepoints, cursors, temporary tables) are numbered anew, in the order in which they
  # appear.
  # No literal is kept, not even where the text is broken: an unterminated string or comment runs to the end, and where
  # a backslash before a quote leaves open which dialect was meant, everything between the first and the last quote
  # counts as one literal. A text that cannot be read counts under a digest of itself. Never raises.
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
    # A text that the short way of {plain} can read: strings are closed and have no prefix, no comment, dollar quote or backslash.
    PLAIN = %r{\A(?:[^"'`/\-\#$\\]++|"\w*+"|`\w*+`|(?<!\w)'[^'\\]*+(?:''[^'\\]*+)*+'(?!\w)|/(?!\*)|-(?!-))*+\z}
    LITERAL = /'[^']*+(?:''[^']*+)*+'|(?<![\w.:?"`+-])\d++(?![\w.]|:\w)/
    # `users AS a17`, `FROM users a17`, `WITH a17 AS (`; not the columns of ActiveRecord's eager loading, which a detector looks for
    CTE = /(?:\bwith|\brecursive|,) (?=\w+ as (?:(?:not )?materialized )?\()/
    ALIAS = /(?:(?: as|\b(?:from|join) [\w.]+) (?!t\d+_r\d)|#{CTE})(\w*[a-z_]\d+)\b/
    NUMBERED = /\b((?:savepoint |pg_temp_|te?mp_|temporary_|cursor_)\w*?)\d+\b/
    LONGEST = 1 << 20
    KEPT = 2_000
    @texts = {}
    @plain = {}

    class << self
      # @param sql [String]
      # @return [String] frozen; the same object for a text that was seen lately
      def of(sql)
        @texts[sql] || keep(sql, read(sql))
      end

      private

      # Bounded by starting anew: what is asked often is back after one request.
      def keep(sql, fingerprint)
        @texts = {} if @texts.size >= KEPT
        @texts[sql] = fingerprint
      end

      def read(sql)
        plain = plain(sql) or return compute(sql)
        @plain = {} if @plain.size >= KEPT
        @plain[plain] ||= compute(plain)
      rescue ArgumentError, ::EncodingError, NoMethodError, TypeError, RegexpError
        compute(sql)
      end

      # Texts that differ in plain literals are read once for all of them: this takes a tenth of what {compute} does.
      # @return [String, nil] nil where the text is no plain one
      def plain(sql)
        sql.gsub(LITERAL, "?") if sql.bytesize <= LONGEST && sql.match?(PLAIN)
      end

      def compute(sql)
        sql.bytesize > LONGEST ? digest(sql) : renumber(collapse(literals_out(readable(sql)))).freeze
      rescue ArgumentError, ::EncodingError, NoMethodError, TypeError, RegexpError
        digest(sql)
      end

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

      def renumber(text)
        return text unless text.match?(/[a-z_]\d/)

        text = text.gsub(NUMBERED, '\11')
        aliases = text.scan(ALIAS).flatten.uniq
        return text if aliases.empty?

        seen = Hash.new(0)
        names = aliases.to_h { |name| [name, name[/\A.*?(?=\d+\z)/].then { |stem| "#{stem}#{seen[stem] += 1}" }] }
        text.gsub(/\b(?:#{aliases.join("|")})\b/, names)
      end

      def digest(sql)
        require "digest"
        -"unreadable:#{Digest::SHA256.hexdigest(sql.to_s.b)[0, 16]}"
      end
    end
  end
end
