# frozen_string_literal: true

module Castellan
  module HTTP
    # Adds names to a Vary field (RFC 9110 §12.5.5) and leaves out those that it has.
    #
    #   Vary.add("Origin", "accept", "origin") # => "Origin, accept"
    #   Vary.add(nil, "Accept")                # => "Accept"
    #   Vary.add("*", "Accept")                # => "*"
    module Vary
      module_function

      # @param value [String, nil] what the field says so far
      # @param names [Array<String>]
      # @return [String]
      def add(value, *names)
        all = (value.to_s.split(",").map(&:strip).reject(&:empty?) + names).uniq(&:downcase)
        all.include?("*") ? "*" : all.join(", ")
      end
    end
  end
end
