# frozen_string_literal: true

module Castellan
  module Detect
    # What a {Fix} says of one case: the text, or why there is none, and the text in a form that a trial can apply. Frozen.
    #
    #   Cure.new(text: "add .preload(:employee) where …", preload: { employee: {} })
    #   Cure.refused("nobody knows where the users were loaded")
    #
    # `preload` and `remedy` are as {Finding} tells.
    Cure = Struct.new(:text, :refused, :preload, :remedy, keyword_init: true) do
      # @param reason [String]
      # @return [Cure]
      def self.refused(reason) = new(refused: reason)

      def initialize(**)
        super
        freeze
      end
    end
  end
end
