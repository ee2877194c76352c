# frozen_string_literal: true

module Castellan
  class Resource
    # Converts declared names to member names.
    #
    #   KeyTransform.call(:last_login_at, :dash)         # => "last-login-at"
    #   KeyTransform.call(:last_login_at, :camel_lower)  # => "lastLoginAt"
    module KeyTransform
      WAYS = {
        none: ->(name) { name },
        underscore: ->(name) { Inflector.underscore(name) },
        dash: ->(name) { name.tr("_", "-") },
        camel: ->(name) { name.split("_").map { |word| word[0].to_s.upcase + word[1..].to_s }.join },
        camel_lower: ->(name) { name.gsub(/_([a-z\d])/) { Regexp.last_match(1).upcase } }
      }.freeze
      private_constant :WAYS

      # @return [Array<Symbol>]
      def self.names
        WAYS.keys
      end

      # @param name [Symbol, String]
      # @param way [Symbol] one of {.names}
      # @return [String] frozen
      def self.call(name, way)
        WAYS.fetch(way).call(name.to_s).freeze
      end
    end
  end
end
