# frozen_string_literal: true

module Castellan
  module Rows
    # Formats the source location of a method or block, for messages.
    #
    #   Place.of(User.instance_method(:name))   # => " (app/models/user.rb:12)"
    module Place
      # @param code [Method, UnboundMethod, Proc, nil]
      # @return [String] empty if Ruby has no source location for it
      def self.of(code)
        path, line = code&.source_location
        path ? " (#{path.delete_prefix("#{Dir.pwd}/")}:#{line})" : ""
      end
    end
  end
end
