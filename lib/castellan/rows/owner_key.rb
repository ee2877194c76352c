# frozen_string_literal: true

module Castellan
  module Rows
    # Provides the key of an owner that does not exist, for generating the SQL of an association.
    # The ORM writes the statement that loads the association lazily, with all its scopes; an adapter then
    # replaces the key in the SQL with a column of the surrounding statement, or with the ids of all parents.
    #
    #   sql = %(SELECT "roles"."id" FROM "roles" … WHERE "assignments"."user_id" = 1847362915)
    #   OwnerKey.column(sql)                     # => %("assignments"."user_id")
    #   OwnerKey.replace(sql, %("users"."id"))   # => … WHERE "assignments"."user_id" = "users"."id"
    #
    # The number fits into four bytes, because ActiveRecord writes `1=0` for values out of range.
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

      # @param type [Symbol] the type of the key's column
      # @return [Integer, String, nil] nil for a type without such a value
      def value(type)
        VALUES[type]
      end

      # @return [String] the SQL with the expression in place of the key
      # @raise [DeclarationError] if the SQL does not contain the key, because it is the same for every owner
      def replace(sql, expression)
        raise DeclarationError, "the statement of an association does not compare its owner's key with a value: #{sql}" unless in?(sql)

        sql.gsub(LITERAL) { expression }
      end

      # @yieldparam column [String] the column that is compared with the key
      # @yieldreturn [String] the condition that replaces the comparison
      # @return [String] the SQL with that condition
      def replace_comparison(sql)
        sql.sub(COMPARISON) { yield Regexp.last_match(1) }
      end

      # @return [String, nil] the column that is compared with the key; nil if the key occurs elsewhere
      def column(sql)
        sql[COMPARISON, 1] if sql.scan(LITERAL).size == 1
      end

      def in?(sql)
        LITERAL.match?(sql)
      end
    end
  end
end
