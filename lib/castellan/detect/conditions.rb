# frozen_string_literal: true

module Castellan
  module Detect
    # The conditions of a statement, read from its fingerprint. Pure functions.
    #
    #   Conditions.all("select * from versions where (project_id is null or project_id = ?) and open = ? limit ?")
    #   # => ["project_id is null or project_id = ?", "open = ?"]
    #   Conditions.certain("(project_id is null or project_id = ?) and open = ?")   # => " and open = ?"
    module Conditions
      AFTER = /\A(?:group by|order by|having|limit|offset|for|returning|union|window|fetch)\b/
      WORD = /\A(?:\w+|.)/m
      INNERMOST = /\(([^()]*)\)/
      private_constant :AFTER, :WORD, :INNERMOST

      module_function

      # @param fingerprint [String]
      # @return [Array<String>] those that must all be met, without the parentheses around them
      def all(fingerprint)
        clause = outer(fingerprint).find { |word, _rest| word == "where" }&.last or return []
        split(clause.lstrip[0, length(clause.lstrip)].strip)
      end

      # @param text [String] conditions
      # @return [String] the same without alternatives, of which none need be met
      def certain(text)
        text = text.gsub(INNERMOST) { |_group| marked(Regexp.last_match(1)) } while text.match?(INNERMOST)
        text = text.tr("\u0001\u0002", "()")
        text.match?(/\bor\b/) ? "" : text
      end

      # A group that was looked at has no parentheses any more.
      def marked(inner) = inner.match?(/\bor\b/) ? "" : "\u0001#{inner}\u0002"
      private_class_method :marked

      # Words outside parentheses, each with what follows it.
      def outer(text)
        return enum_for(:outer, text) unless block_given?

        depth = 0
        until text.empty?
          word = text[WORD]
          text = text[word.size..]
          yield word, text if depth.zero? && word.match?(/\w/)
          depth += { "(" => 1, ")" => -1 }.fetch(word, 0)
        end
      end
      private_class_method :outer

      # Up to what follows the conditions.
      def length(clause)
        outer(clause) { |word, rest| return clause.size - rest.size - word.size if "#{word}#{rest}".match?(AFTER) }
        clause.size
      end
      private_class_method :length

      def split(clause)
        clause = clause[1..-2].strip while wrapped?(clause)
        cuts = cuts(clause)
        cuts.empty? ? [clause] : parts(clause, cuts).flat_map { |part| split(part) }
      end
      private_class_method :split

      # Where an AND stands that is not BETWEEN's. Of alternatives there are no parts.
      def cuts(clause)
        cuts = []
        between = false
        outer(clause) do |word, rest|
          return [] if word == "or"

          if word == "between" then between = true
          elsif word == "and"
            between ? between = false : cuts << (clause.size - rest.size - 3)
          end
        end
        cuts
      end
      private_class_method :cuts

      def parts(clause, cuts)
        [-3, *cuts].zip([*cuts, clause.size]).map { |from, to| clause[(from + 3)...to].strip }
      end
      private_class_method :parts

      def wrapped?(clause)
        return false unless clause.start_with?("(") && clause.end_with?(")")

        depth = 0
        clause.each_char.with_index do |char, index|
          depth += { "(" => 1, ")" => -1 }.fetch(char, 0)
          return index == clause.size - 1 if depth.zero?
        end
        false
      end
      private_class_method :wrapped?
    end
  end
end
