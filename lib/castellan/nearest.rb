# frozen_string_literal: true

require "did_you_mean"

module Castellan
  # Suggests the nearest correct name for an error message.
  #
  #   Nearest.hint(:emial, %i[email last_name])  # => " (did you mean email?)"
  #   Nearest.hint(:zzz, %i[email last_name])    # => " (there is: email, last_name)"
  module Nearest
    LISTED = 12
    private_constant :LISTED

    module_function

    # @param wrong [Symbol, String]
    # @param right [Enumerable<Symbol, String>] the correct names
    # @return [String] begins with a space; empty if there are no correct names
    def hint(wrong, right)
      names = right.map(&:to_s).sort
      return "" if names.empty?

      nearest = DidYouMean::SpellChecker.new(dictionary: names).correct(wrong.to_s).first
      nearest ? " (did you mean #{nearest}?)" : " (there is: #{names.first(LISTED).join(", ")}#{", …" if names.size > LISTED})"
    end
  end
end
