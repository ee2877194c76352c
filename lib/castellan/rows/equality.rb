# frozen_string_literal: true

module Castellan
  module Rows
    # Finds the columns that have the same value in all rows that a SELECT of one table reads.
    #
    #   sql = %(SELECT "posts".* FROM "posts" WHERE "account_id" = 7 AND (title <> 'a'))
    #   Equality.of(sql, "posts")                                     # => {"account_id" => "7"}
    #   Equality.of("SELECT * FROM posts JOIN users ON …", "posts")   # => {}
    #
    # Finds only integers and UUIDs in plain equalities joined by AND; a full SQL parser (pg_query) would not
    # find more. Only for statements whose tables {StatementTables} found: they have no comments and escapes.
    module Equality
      TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|\S/
      SEVERAL = /\A(?:JOIN|UNION|INTERSECT|EXCEPT|WITH|HAVING|WINDOW|FOR)\z/i
      AFTER = /\A(?:ORDER|LIMIT|OFFSET|GROUP)\z/i
      CHOOSING = /\A(?:DISTINCT|LIMIT|OFFSET|GROUP|OVER)\z/i
      UNCLEAR = /\A(?:OR|BETWEEN|CASE)\z/i # outside parentheses, where AND joins the conditions
      VALUE = /\A(?:0|[1-9]\d{0,18}|'\h{8}(?:-\h{4}){3}-\h{12}')\z/
      private_constant :TOKEN, :SEVERAL, :AFTER, :CHOOSING, :UNCLEAR, :VALUE

      module_function

      # @param sql [String]
      # @param table [String] the name that {StatementTables} returns
      # @return [Hash{String => String}] values by column
      def of(sql, table)
        where = conditions(sql.scan(TOKEN), table.split(".")) or return {}
        conjuncts(where).filter_map { |condition| equal(condition, table.split(".").last) }.to_h
      end

      # @return [Boolean] whether the statement filters the table by its own columns alone
      def filter?(sql, table)
        tokens = sql.scan(TOKEN)
        tokens.none? { |token| CHOOSING.match?(token) } && !conditions(tokens, table.split(".")).nil?
      end

      # @return [Array<String>, nil] the tokens after WHERE; nil if the
      #   statement reads another table or an alias
      def conditions(tokens, names)
        return if tokens.any? { |token| SEVERAL.match?(token) } || tokens.count { |token| token.casecmp?("SELECT") } != 1

        tokens = tokens.drop_while { |token| !token.casecmp?("FROM") }.drop(1)
        named = tokens.first(tokens[1] == "." ? 3 : 1)
        return unless (named - ["."]).map { |name| plain(name) }.last(names.size) == names

        where = tokens.drop(named.size)
        return [] if where.empty?
        return unless where.first.casecmp?("WHERE")

        ends = top(where).find { |token, _| AFTER.match?(token) }
        where[1...(ends ? ends.last : where.size)]
      end

      # @return [Array<Array<String>>] the conditions that are joined by AND
      def conjuncts(tokens)
        level = top(tokens)
        return conjuncts(tokens[1..-2]) if tokens.first == "(" && level.size == 2 && tokens.last == ")"
        return [] if level.any? { |token, _| UNCLEAR.match?(token) }

        ands = level.filter_map { |token, at| at if token.casecmp?("AND") }
        return [tokens] if ands.empty?

        [-1, *ands, tokens.size].each_cons(2).flat_map { |from, to| conjuncts(tokens[(from + 1)...to]) }
      end

      # @return [Array(String, String), nil] the column and the value
      def equal(tokens, table)
        tokens = [*tokens[0...-4], "=", tokens[-2]] if tokens.last == ")" && tokens[-3] == "(" && tokens[-4]&.casecmp?("IN")
        *names, sign, value = tokens
        column = plain(names.last.to_s)
        return unless sign == "=" && VALUE.match?(value) && (names.size == 1 || (names[-2] == "." && plain(names[-3].to_s) == table))

        [column, value.delete("'")] if names.size == 1 || names.size == 3 || (names.size == 5 && names[1] == ".")
      end

      # @return [Array(String, Integer)] the tokens outside parentheses and
      #   the parentheses, with their positions
      def top(tokens)
        depth = 0
        tokens.each_with_index.filter_map do |token, at|
          depth -= 1 if [")", "]"].include?(token)
          outside = depth.zero?
          depth += 1 if ["(", "["].include?(token)
          [token, at] if outside
        end
      end

      def plain(name) = name.start_with?('"') ? name[1..-2].gsub('""', '"') : name.downcase
      private_class_method :conditions, :conjuncts, :equal, :top, :plain
    end
  end
end
