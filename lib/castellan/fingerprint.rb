# frozen_string_literal: true

require "digest/sha2"
require_relative "bounded_cache"

module Castellan
  # Normalizes SQL: lower case, without literals, comments, query tags and the lengths of lists.
  #
  #   Fingerprint.of(%q(SELECT * FROM "users" WHERE "users"."id" IN (1, 2, 3) /*action='index'*/))
  #   # => "select * from users where users.id in (?)"
  #
  # A bind includes its cast (`$1::int4`), which Sequel's pg_auto_parameterize writes or not.
  # Renumbers aliases (`a17`) by first appearance. Ignores the numbers of savepoints, cursors, prepared
  # statements and temporary tables, and random endings of 8 or more hexadecimal digits
  # (`castellan_3f2a9c01`).
  #
  # No literal remains, even of invalid SQL: an unterminated string or comment extends to the end, and if it
  # depends on the dialect whether a backslash escapes a quote, everything from the first to the last quote
  # counts as one literal. SQL that it cannot read becomes a digest. Never raises.
  #
  # Double quotes, backticks and brackets delimit identifiers, as in standard SQL. On MySQL without
  # ANSI_QUOTES, double-quoted literals remain in the fingerprint.
  module Fingerprint
    TOKEN = %r{
      (?<string>(?:\b[exbn]|\b_\w+\s*)?'[^']*+(?:''[^']*+)*+(?:'|\z)) |
      (?<dollar>\$(?<tag>[a-z_]\w*|)\$.*?(?:\$\k<tag>\$|\z)) |
      (?<comment>/\*.*?(?:\*/|\z)|--[^\n]*+|\#\ [^\n]*+) |
      (?<identifier>"[^"]*+"|`[^`]*+`|\[[a-z_]\w*+\]) |
      (?<bind>\$\d++(?:::\w++(?:\[\])?)?|\?\d++|(?<![:\w]):[a-z_]\w*+) |
      (?<number>(?<![\w.])(?:0x\h++|\d++(?:\.\d*+)?(?:e[+-]?\d++)?|\.\d++(?:e[+-]?\d++)?)\b) |
      (?<boolean>\b(?:true|false)\b) |
      (?<space>\s++)
    }mix
    LIST = /\b(in|any) ?\((?:array\[)?\s*(?:\?(?: ?, ?\?)*+|\((?:\?(?: ?, ?\?)*+)\)(?: ?, ?\((?:\?(?: ?, ?\?)*+)\))*+)\]?\s*\)/
    VALUES = /\bvalues ?\((?:[^()]|\([^()]*\))*+\)(?: ?, ?\((?:[^()]|\([^()]*\))*+\))*+/
    SIGNED = /(?<=[=<>(,] |[=<>(,]|between |and |limit )[-+] ?\?/
    # SQL for the fast path {plain}: strings are closed and without prefix, and there are no comments, dollar
    # quotes or backslashes.
    PLAIN = %r{\A(?:[^"'`/\-\#$\\]++|"\w*+"|`\w*+`|(?<!\w)'[^'\\]*+(?:''[^'\\]*+)*+'(?!\w)|/(?!\*)|-(?!-))*+\z}
    LITERAL = /'[^']*+(?:''[^']*+)*+'|(?<![\w.:?"`+-])\d++(?![\w.]|:\w)/
    # `users AS a17`, `FROM users a17`, `WITH a17 AS (`. Does not match the columns of ActiveRecord's eager
    # loading, because {Detect::Shape#joins?} needs their names.
    CTE = /(?:\bwith|\brecursive|,) (?=\w+ as (?:(?:not )?materialized )?\()/
    ALIAS = /(?:(?: as|\b(?:from|join) [\w.]+) (?!t\d+_r\d)|#{CTE})(\w*[a-z_]\d+)\b/
    # `castellan_3f2a9c01`, `cursor_9f86d081884c7d65`, a UUID with underscores. Does not match
    # `users_20240131`.
    RANDOM = /(?<=_)(?=\h*[a-f])(?=\h*\d)\h{8,}(?:_\h{4,})*\b/
    NUMBERED = /((?:\A(?:prepare|execute|deallocate|declare|close) |\b(?:savepoint |pg_temp_|te?mp_|temporary_|cursor_))\w*?)\d+\b/
    LONGEST = 1 << 20
    KEPT = 2_000
    LONG = 1 << 10 # the caches keep digests of longer SQL, because long lists and inserts rarely repeat
    @texts = BoundedCache.new(limit: KEPT)
    @plain = BoundedCache.new(limit: KEPT)

    class << self
      # @return [String] frozen; the same object for SQL that was seen recently
      def of(sql)
        @texts.fetch(key(sql)) { read(sql) }
      end

      private

      def key(sql) = sql.is_a?(String) && sql.bytesize > LONG ? Digest::SHA256.digest(sql) : sql

      def read(sql)
        plain = plain(sql) or return compute(sql)
        @plain.fetch(key(plain)) { compute(plain) }
      rescue ArgumentError, ::EncodingError, NoMethodError, TypeError, RegexpError
        compute(sql)
      end

      # Replaces simple literals first, so that statements that differ only in them are parsed once. Takes a
      # tenth of the time of {compute}.
      # @return [String, nil] nil if the SQL is not plain
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
        return text unless text.match?(/[a-z_]\d|\d[a-z_]/)

        text = text.gsub(RANDOM, "1").gsub(NUMBERED, '\11')
        aliases = text.scan(ALIAS).flatten.uniq
        return text if aliases.empty?

        seen = Hash.new(0)
        names = aliases.to_h { |name| [name, name[/\A.*?(?=\d+\z)/].then { |stem| "#{stem}#{seen[stem] += 1}" }] }
        text.gsub(/\b(?:#{aliases.join("|")})\b/, names)
      end

      def digest(sql)
        -"unreadable:#{Digest::SHA256.hexdigest(sql.to_s.b)[0, 16]}"
      end
    end
  end
end
