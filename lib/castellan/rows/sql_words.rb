# frozen_string_literal: true

module Castellan
  module Rows
    # Scans a statement for identifiers, function calls and literals.
    #
    #   words = SqlWords.new(%(SELECT lower(u.name) FROM "users" u WHERE id = 7 AND name = 'Ada'))
    #   words.names      # => [["lower"], ["u"], ["name"], ["u", "name"], ["users"], …], qualified names also by their parts
    #   words.calls      # => ["lower"]
    #   words.skeleton   # => the SQL without the values of strings and numbers
    #   SqlWords.new("SELECT E'\\''").reason   # => "an escape string"
    #
    # It has no grammar, so keywords are names too, and it refuses what it cannot read for certain, as well as
    # what PostgreSQL replaces by the current time or user.
    class SqlWords
      QUOTED = /"(?:[^"]|"")*"|`(?:[^`]|``)*`/
      NAME = /#{QUOTED}|[a-z_[^\x00-\x7F]][\w$[^\x00-\x7F]]*/i
      TEXT = /(#{QUOTED})|'((?:[^']|'')*)'/
      NUMBER = /(?<![\w$])\d[\w.]*/
      CAST = /(''|#{NUMBER})?\s*::\s*([\w"]*)/
      # Other casts may read a text as the current time.
      PLAIN = "smallint|integer|int[248]?|bigint|numeric|decimal|real|float[48]?|double|bool(?:ean)?|text|citext|" \
              "varchar|char(?:acter)?|bpchar|bytea|uuid|jsonb?|bit"
      UNCERTAIN = {
        "a comment" => %r{--|/\*},
        "a dollar-quoted string" => /\$\w*\$/,
        "an escape string" => /[\w&]''/,
        "an escaped name" => /&"/
      }.freeze
      UNCERTAIN_ON_POSTGRES = {
        "adjacent strings" => /''\s+''/,
        "a cast whose result may change" => /\bcast\s*\((?!\s*(?:''|#{NUMBER})\s+as\b)(?![^()]*\sas\s+(?:#{PLAIN})\b)/i
      }.freeze
      # The last four contain casts of their own.
      AMBIENT = /\b(?:current_(?:date|time|timestamp|user|role|catalog|schema)|localtime|localtimestamp|session_user|user|
                 skip\s+locked|xmltable|json_table|json_value|json_query)\b/ix
      DAY = /(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])/i
      private_constant :QUOTED, :TEXT, :NAME, :NUMBER, :CAST, :PLAIN, :UNCERTAIN, :UNCERTAIN_ON_POSTGRES, :AMBIENT, :DAY

      # @return [String, nil] what makes the statement uncertain
      # @return [Array<Array<String>>] names and qualified names, unquoted ones in lower case
      # @return [Array<String>] the names before an opening parenthesis
      # @return [String]
      attr_reader :reason, :names, :calls, :skeleton

      # @param postgres [Boolean] whether [ opens an array and not a name, and 'today' is a time
      def initialize(sql, postgres: true)
        @postgres = postgres
        strings = []
        text = sql.b.force_encoding(Encoding::UTF_8).scrub("\0")
        bare = text.gsub(TEXT) { Regexp.last_match(1) || (strings << Regexp.last_match(2) and "''") }
        @reason = "an open quote" if text.gsub(TEXT, "").match?(/['"`\0]/)
        @reason = uncertain(bare.gsub(QUOTED, '""'), strings) || @reason
        @skeleton = bare.gsub(/(#{QUOTED})|#{NUMBER}/) { Regexp.last_match(1) || "?" }
        @names = bare.scan(/#{NAME}(?:\s*\.\s*#{NAME})*/).flat_map { |chain| parts(chain) }.uniq
        @calls = bare.scan(/(#{NAME})\s*\(/).map { |name,| plain(name) }.uniq
        freeze
      end

      private

      # @param outside [String] the SQL without the contents of strings and of quoted names
      def uncertain(outside, strings)
        patterns = @postgres ? { **UNCERTAIN, **UNCERTAIN_ON_POSTGRES } : { "a name in brackets" => /\[/, **UNCERTAIN }
        found, = patterns.find { |_, pattern| pattern.match?(outside) }
        found ||= "the word #{outside[AMBIENT].upcase}" if AMBIENT.match?(outside)
        found || ("an escape string" if strings.any? { |string| string.match?(/\\(?:'|\z)/) }) || (changing(outside, strings) if @postgres)
      end

      def changing(outside, strings)
        day = strings.find { |string| DAY.match?(string) } and return "the string '#{day[0, 40]}'"
        cast = outside.scan(CAST).find { |literal, type| literal.nil? && !type.match?(/\A(?:#{PLAIN})\z/i) }
        "a cast to #{cast.last}" if cast
      end

      def parts(chain)
        names = chain.scan(NAME).map { |name| plain(name) }
        names.map { |name| [name] } + (2..names.size).map { |size| names.first(size) }
      end

      def plain(name)
        name.start_with?('"', "`") ? name[1..-2].gsub(name[0] * 2, name[0]) : name.downcase
      end
    end
  end
end
