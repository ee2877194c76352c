# frozen_string_literal: true

require_relative "errors"

module Castellan
  # Defines the constants of other libraries, so that an application only has to change its Gemfile.
  #
  #   gem "castellan", require: "castellan/compat/jsonapi_serializer"   # in place of gem "jsonapi-serializer"
  #
  # Loaded only if you require it.
  module Compat
    # The directory of files that replace the gem's files, with the same names.
    SHIMS = File.join(__dir__, "compat", "shims").freeze

    class << self
      # @param name [String] the name of a constant
      # @param gem [String] the gem that defines it
      # @param ours [Module] Castellan's module with this name
      # @raise [ConfigurationError] if the gem itself is loaded, because two libraries cannot define one
      #   module
      def claim(name, gem, ours)
        return unless Object.const_defined?(name)

        found = Object.const_get(name)
        return if found.equal?(ours)

        location = Object.const_source_location(name)&.join(":")
        raise ConfigurationError, "#{name} is defined already (#{location}): take the gem #{gem} out of the Gemfile; if another gem " \
                                  "requires it, write gem \"castellan\" above that gem; or write `include Castellan::Serializer` " \
                                  "and leave castellan/compat out"
      end

      # Puts the replacements first on the load path, so that `require` of the gem, also
      # in other libraries, loads Castellan.
      def replace_gem
        $LOAD_PATH.unshift(SHIMS) unless $LOAD_PATH.include?(SHIMS)
      end

      # Gives an error class the gem's name, because error trackers and
      # `rescue_responses` look up classes by name.
      def rename(error, name)
        %i[name to_s inspect].each do |method|
          error.define_singleton_method(method) { equal?(error) ? name : super() }
        end
      end
    end
  end
end
