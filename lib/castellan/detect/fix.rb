# frozen_string_literal: true

module Castellan
  module Detect
    # Describes the code to write instead of repeated statements, or why there is no automatic fix.
    # Frozen.
    #
    #   Fix.new(text: "add .preload(:employee) where the users are loaded: app/users.rb:9", preload: { employee: {} })
    #   Fix.none("no load of several users was seen")
    #
    # A fix is a preload ({Loading}), a scoped `has_one` ({ScopedOne}), one query for all values ({LookUp}),
    # or `insert_all`. For `preload`, `declaration` and `also` see {Finding}.
    Fix = Struct.new(:text, :refused, :preload, :declaration, :also, keyword_init: true) do
      def self.none(reason) = new(refused: reason)

      # @param link [ModelAssociation]
      # @return [String] why an association of which only some records are read has no preload
      def self.limit(link)
        "a limit for each record of #{link} is one for all of them when it is preloaded: rank the rows in the database"
      end

      def initialize(also: [], **rest)
        super(also: also.freeze, **rest)
        freeze
      end

      # @param rivals [Array<ModelAssociation>] other associations that would send the same statement
      def ambiguous(rivals)
        return self if rivals.empty?

        note = " (ambiguous: #{rivals.join(" and ")} #{rivals.one? ? "sends" : "send"} the same query)"
        Fix.new(**to_h, text: text && "#{text}#{note}", refused: refused && "#{refused}#{note}")
      end
    end
  end
end
