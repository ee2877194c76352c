# frozen_string_literal: true

require_relative "errors"

module Castellan
  # The constants of other libraries, for applications that change nothing but their Gemfile.
  #
  #   gem "castellan", require: "castellan/compat/jsonapi_serializer"   # in place of gem "jsonapi-serializer"
  #
  # Nothing here is loaded unless it is required by its own name.
  module Compat
    # @param name [String] of a constant
    # @param gem [String] whose it is
    # @param ours [Module] what it is to be
    # @raise [ConfigurationError] when the gem itself is loaded: two of one name would take each other's methods away
    def self.claim(name, gem, ours)
      return unless Object.const_defined?(name)

      found = Object.const_get(name)
      return if found.equal?(ours)

      location = Object.const_source_location(name)&.join(":")
      raise ConfigurationError, "#{name} is defined already (#{location}): take the gem #{gem} out of the Gemfile, or write " \
                                "`include Castellan::Serializer` and leave castellan/compat out"
    end
  end
end
