# frozen_string_literal: true

module Castellan
  module Rows
    # Scans a statement for identifiers, function calls and literals.
    # Stops with a reason at anything ambiguous.
    #
    #   words = SqlWords.new(%(SELECT lower(u.name) FROM "users" u WHERE id = 7 AND name = 'Ada'))
    #   words.names      # => [["lower"], ["u", "name"], ["u"], ["users"], …], qualified names also by their parts
    #   words.calls      # => ["lower"]
    #   words.skeleton   # => the SQL with ? for strings and numbers
    #   SqlWords.new("SELECT E'\\''").reason   # => "an escape string"
    #
    # It has no grammar, so keywords are names too. It stops at escape and dollar-quoted strings, comments,
    # keywords for the current time or user, strings that PostgreSQL reads as the current day, and casts whose
    # result may depend on the time: of anything but a literal, to a type that is not in {PLAIN}.
    class SqlWords
      TOKEN = %r{'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[a-z_[^\x00-\x7F]][\w$[^\x00-\x7F]]*|\d[\w.]*|--|/\*|::|\$\w*\$|\s+|.}im
      NUMBER = /\A\d/
      WORD = /\A[a-z_[^\x00-\x7F]]/i
      # The last four contain casts of their own.
      AMBIENT = /\A(?:current_(?:date|time|timestamp|user|role|catalog|schema)|localtime|localtimestamp|session_user|user|
                     xmltable|json_table|json_value|json_query)\z/x
      DAY = /(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])/i
      PLAIN = %w[smallint integer int int2 int4 int8 bigint numeric decimal real float float4 float8 double boolean bool text citext
                 varchar character char bpchar bytea uuid json jsonb bit].freeze
      GIVEN_UP = { "--" => "a comment", "/*" => "a comment", "'" => "an open string", '"' => "an open name", "`" => "an open name",
                   "[" => "a name in brackets", "\0" => "a zero byte" }.freeze
      private_constant :TOKEN, :NUMBER, :WORD, :AMBIENT, :DAY, :PLAIN, :GIVEN_UP

      # @return [String, nil] what the scanner stopped at
      attr_reader :reason
      # @return [Array<Array<String>>] names and qualified names, unquoted ones in lower case
      # @return [Array<String>] the names before an opening parenthesis
      # @return [String]
      attr_reader :names, :calls, :skeleton

      # @param postgres [Boolean] whether [ opens an array and not a name, and 'today' is a time
      def initialize(sql, postgres: true)
        @postgres = postgres
        @names = []
        @calls = []
        @skeleton = +""
        @chain = []
        @casts = [] # for each open parenthesis, whether it is that of CAST
        read(sql.b.force_encoding(Encoding::UTF_8).scrub("\0").scan(TOKEN))
        names.uniq!
        calls.uniq!
        freeze
      end

      private

      def read(tokens)
        before = last = earlier = nil
        tokens.each do |token|
          break if (@reason = given_up(token, before) || (@postgres && changing(token, last, earlier)))

          before = token
          @skeleton << (token.start_with?("'") || NUMBER.match?(token) ? "?" : token)
          next if token.match?(/\A\s/)

          word(token, last)
          earlier = last
          last = token
        end
      end

      def changing(token, last, earlier)
        return if token.match?(/\A\s/)
        return "adjacent strings" if token.start_with?("'") && last&.start_with?("'")
        return "SKIP LOCKED" if token.casecmp?("locked") && last&.casecmp?("skip")
        return cast(token) if @operand

        case token.downcase
        when "::" then @operand = last
        when "(" then @casts << last&.casecmp?("cast")
        when ")" then @casts.pop
        when "as" then @operand = earlier == "(" ? last : token if @casts.last
        end
        nil
      end

      def cast(type)
        literal = @operand.start_with?("'") || NUMBER.match?(@operand)
        @operand = nil
        "a cast to #{type}" unless literal || PLAIN.include?(name(type))
      end

      def given_up(token, before)
        return "a dollar-quoted string" if token.start_with?("$") && token.size > 1
        return string(token, before) if token.size > 1 && token.start_with?("'")
        return "an escaped name" if token.start_with?('"') && before == "&"
        return "the word #{token.upcase}" if AMBIENT.match?(token.downcase)

        GIVEN_UP[token] unless token == "[" && @postgres
      end

      def string(token, before)
        return "an escape string" if (before && (WORD.match?(before) || before == "&")) || token.match?(/\\(?:'|\z)/)

        "the string #{token[0, 40]}" if @postgres && DAY.match?(token)
      end

      def word(token, last)
        if (name = name(token))
          @chain = last == "." ? [*@chain, name] : [name]
          @names.push([name], @chain)
        elsif token == "(" && last && (called = name(last))
          @calls << called
        elsif token != "."
          @chain = []
        end
      end

      def name(token)
        case token[0]
        when '"', "`" then token[1..-2].gsub(token[0] * 2, token[0])
        when WORD then token.downcase
        end
      end
    end
  end
end
