# frozen_string_literal: true

require_relative "errors"

module Castellan
  # Defines the constants of other libraries, for applications that change nothing but their Gemfile.
  #
  #   gem "castellan", require: "castellan/compat/jsonapi_serializer"   # in place of gem "jsonapi-serializer"
  #
  # Nothing here is loaded unless it is required by its own name.
  module Compat
    # The files that stand in for the gem's, by the names under which they are required.
    SHIMS = File.join(__dir__, "compat", "shims").freeze

    class << self
      # @param name [String] of a constant
      # @param gem [String] the gem that defines it
      # @param ours [Module] the module that is to have this name
      # @raise [ConfigurationError] if the gem itself is loaded: two libraries cannot share one module
      def claim(name, gem, ours)
        return unless Object.const_defined?(name)

        found = Object.const_get(name)
        return if found.equal?(ours)

        location = Object.const_source_location(name)&.join(":")
        raise ConfigurationError, "#{name} is defined already (#{location}): take the gem #{gem} out of the Gemfile; if another gem " \
                                  "requires it, write gem \"castellan\" above that gem; or write `include Castellan::Serializer` " \
                                  "and leave castellan/compat out"
      end

      # Puts the shims first on the load path, so that libraries that require the gem get Castellan, with the gem in the bundle and
      # without it.
      def replace_gem
        $LOAD_PATH.unshift(SHIMS) unless $LOAD_PATH.include?(SHIMS)
      end

      # Gives an error class the gem's name: error trackers and `rescue_responses` look classes up by their names.
      # @param error [Class]
      # @param name [String]
      def rename(error, name)
        %i[name to_s inspect].each do |method|
          error.define_singleton_method(method) { equal?(error) ? name : super() }
        end
      end
    end
  end
end
