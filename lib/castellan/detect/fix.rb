# frozen_string_literal: true

module Castellan
  module Detect
    # What to write in place of statements that repeat, or why there is no automatic fix. Frozen.
    #
    #   Fix.new("add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9", preload: { employee: {} })
    #   Fix.none("no load of several users was seen")
    #
    # There are five: a preload, an association with a scope, one look-up for all values, one grouped calculation, and `insert_all`.
    # `preload` and `declaration` are the first two as a trial applies them, see {Finding}; `also` are further places to preload at.
    class Fix
      # @return [String, nil]
      # @return [String, nil] why there is none
      # @return [Hash, nil]
      # @return [Hash, nil]
      # @return [Array<String>]
      attr_reader :text, :refused, :preload, :declaration, :also

      # @param reason [String]
      def self.none(reason) = new(nil, refused: reason)

      def initialize(text, refused: nil, preload: nil, declaration: nil, also: [])
        @text = text
        @refused = refused
        @preload = preload
        @declaration = declaration
        @also = also.freeze
        freeze
      end

      # @param rivals [Array<Link>] associations that ask the same, where the statement leaves open which was meant
      # @return [Fix]
      def ambiguous(rivals)
        return self if rivals.empty?

        note = " (ambiguous: #{rivals.join(" and ")} asks the same)"
        self.class.new(text && "#{text}#{note}", refused: refused && "#{refused}#{note}", preload: preload, declaration: declaration,
                                                 also: also)
      end
    end
  end
end
