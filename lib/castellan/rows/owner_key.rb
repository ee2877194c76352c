# frozen_string_literal: true

module Castellan
  module Rows
    # The key of an owner that does not exist. An ORM asked for the association of that owner writes the very statement it
    # would run to load it lazily, with every scope in it; where the key stands in the text, the adapter puts what it needs:
    # a column of the surrounding statement, or the ids of all parents.
    #
    #   sql = %(SELECT "roles"."id" FROM "roles" … WHERE "assignments"."user_id" = 1847362915)
    #   OwnerKey.column(sql)                     # => %("assignments"."user_id")
    #   OwnerKey.replace(sql, %("users"."id"))   # => … WHERE "assignments"."user_id" = "users"."id"
    #
    # The number fits four bytes, because ActiveRecord answers `1=0` for a value that its column cannot hold.
    module OwnerKey
      NUMBER = 1_847_362_915
      LITERAL = /'[^']*#{NUMBER}'|(?<![\w.'-])#{NUMBER}(?![\w.'])/
      COMPARISON = /((?:["`][^"`]+["`]\.)*["`][^"`]+["`]) = #{LITERAL}/
      VALUES = {
        integer: NUMBER, string: "castellan #{NUMBER}", text: "castellan #{NUMBER}", citext: "castellan #{NUMBER}",
        uuid: "c0de0000-0000-4000-8000-00#{NUMBER}"
      }.freeze
      private_constant :LITERAL, :COMPARISON, :VALUES

      module_function

      # @param type [Symbol] of the key's column
      # @return [Integer, String, nil] nil for a type that has no such value
      def value(type)
        VALUES[type]
      end

      # @return [String] the text with the expression in place of the key
      # @raise [DeclarationError] when the statement is the same for every owner
      def replace(sql, expression)
        raise DeclarationError, "the statement of an association does not compare its owner's key with a value: #{sql}" unless in?(sql)

        sql.gsub(LITERAL) { expression }
      end

      # @return [String] the text with the key brought to that type, whatever is put in its place
      def cast(sql, type)
        sql.gsub(LITERAL) { |key| "CAST(#{key} AS #{type})" }
      end

      # @return [String] the text with the comparison to the key replaced by the one that the block writes for its column
      def replace_comparison(sql)
        sql.sub(COMPARISON) { yield Regexp.last_match(1) }
      end

      # @return [String, nil] the column that is compared with the key, when there is one comparison and no other use
      def column(sql)
        sql[COMPARISON, 1] if sql.scan(LITERAL).size == 1
      end

      # @return [Boolean]
      def in?(sql)
        LITERAL.match?(sql)
      end
    end
  end
end
