# frozen_string_literal: true

module Castellan
  module Detect
    # Describes what to write in place of repeated statements, or why there is no automatic fix. Frozen.
    #
    #   Fix.new("add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9", preload: { employee: {} })
    #   Fix.none("no load of several users was seen")
    #
    # A fix is one of five: a preload ({Loading}), a scoped `has_one` ({ScopedOne}), one look-up or one grouped
    # calculation for all values ({LookUp}), or `insert_all`.
    class Fix
      # @!attribute text
      #   @return [String, nil] the instruction; nil without a fix
      # @!attribute refused
      #   @return [String, nil] the reason why there is no fix
      # @!attribute preload
      #   @return [Hash, nil] the tree of associations that a trial preloads, see {Finding}
      # @!attribute declaration
      #   @return [Hash, nil] the association that a trial declares, see {Finding}
      # @!attribute also
      #   @return [Array<String>] further places that need the same preload
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

      # @param rivals [Array<ModelAssociation>] other associations that would send the same statement
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
