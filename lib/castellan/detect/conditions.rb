# frozen_string_literal: true

module Castellan
  module Detect
    # Splits the WHERE clause of a fingerprint into conditions that must all hold.
    #
    #   Conditions.all("select * from versions where (project_id is null or project_id = ?) and open = ? limit ?")
    #   # => ["project_id is null or project_id = ?", "open = ?"], without outer parentheses
    #
    # If only a subquery has conditions, returns the conditions of the subquery.
    module Conditions
      GROUP = /\((?:[^()]|\g<0>)*\)/
      # Replaces a parenthesized group during parsing.
      MARK = /\u0001(\d+)\u0001/
      CLAUSE = / where (.*?)(?= (?:group by|order by|having|limit|offset|for|returning|union|window|fetch) |\z)/m
      BETWEEN = /( between \S+) and /
      SUBQUERY = /\b(?:from|exists) ?#{MARK}/
      private_constant :GROUP, :MARK, :CLAUSE, :BETWEEN, :SUBQUERY

      class << self
        def all(fingerprint)
          groups = []
          text = fingerprint.gsub(GROUP) { |group| groups << group and "\u0001#{groups.size - 1}\u0001" }
          clause = text[CLAUSE, 1]
          return split(clause, groups) if clause

          inner = text[SUBQUERY, 1]
          inner ? all(groups[Integer(inner)][1..-2]) : []
        end

        private

        def split(clause, groups)
          return [restored(clause, groups)] if clause.match?(/\bor\b/)

          clause.gsub(BETWEEN, "\\1\u0002").split(" and ").flat_map do |part|
            part = part.sub("\u0002", " and ").strip
            number = part[/\A#{MARK}\z/o, 1]
            number ? all(" where #{groups[Integer(number)][1..-2]}") : [restored(part, groups)]
          end
        end

        def restored(text, groups) = text.gsub(MARK) { groups[Integer(Regexp.last_match(1))] }.strip
      end
    end
  end
end
