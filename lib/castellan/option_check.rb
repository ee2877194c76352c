# frozen_string_literal: true

require_relative "errors"

module Castellan
  # Checks options when an object is built. Each method returns the value or raises {ConfigurationError}.
  #
  #   OptionCheck.seconds(RedisStore, :timeout, 0, 0.05)
  #   # ConfigurationError: Castellan::Store::RedisStore timeout: must be seconds above 0, got 0;
  #   #   write for example timeout: 0.05
  module OptionCheck
    PLAIN = [NilClass, TrueClass, FalseClass, Numeric, String, Symbol, Array, Hash, Module].freeze
    private_constant :PLAIN

    module_function

    # @param place [Class, String] the class that has the option
    # @param name [Symbol]
    # @param value [Object]
    # @param type [String] valid values
    # @param example [Object] a valid value, as Ruby code
    # @param given [String] the value in the message
    # @yieldreturn [Boolean] whether the value is valid
    # @return [Object] the value
    # @raise [ConfigurationError]
    def check(place, name, value, type, example, given: shown(value))
      return value if yield value

      raise ConfigurationError, "#{place} #{name}: must be #{type}, got #{given}; write for example #{name}: #{example}"
    end

    def seconds(place, name, value, example)
      check(place, name, value, "seconds above 0", example) { number?(value) && value.positive? }
    end

    # @param type [String] the unit, for example "bytes"
    def whole(place, name, value, example, unit: nil)
      type = ["a whole number", ("of #{unit}" if unit), "above 0"].compact.join(" ")
      check(place, name, value, type, example) { value.is_a?(Integer) && value.positive? }
    end

    # @param secret [Boolean] whether the message must not contain the value
    def text(place, name, value, example, secret: false)
      given = secret && !value.nil? ? kind(value) : shown(value)
      check(place, name, value, "a String that is not empty", example, given: given) { value.is_a?(String) && value.b.match?(/\S/) }
    end

    # @param log [#call, nil] for example `Rails.logger.method(:warn)`; a Logger itself has no `call`
    def log(place, log)
      return log if log.nil? || log.respond_to?(:call)

      raise ConfigurationError, "#{place} log: must respond to call, got #{shown(log)}; write log: Rails.logger.method(:warn)"
    end

    # @return [Boolean] also for a duration of ActiveSupport
    def number?(value)
      value.is_a?(Numeric) && value.real? && value.finite?
    end

    # @return [String] short, and without reading a relation or printing a whole object
    def shown(value)
      PLAIN.any? { |type| type === value } ? value.inspect[0, 100] : kind(value) # rubocop:disable Style/CaseEquality -- a Duration is no Numeric
    end

    # @return [String] the class of a value that may be secret
    def kind(value)
      value.is_a?(String) && value.empty? ? "an empty String" : "an instance of #{value.class}"
    end
  end
end
