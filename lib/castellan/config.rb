# frozen_string_literal: true

require_relative "errors"

# Reads the settings of the whole library. `CASTELLAN=off` in the environment disables all instruments,
# middlewares and caches; documents are still rendered.
module Castellan
  @together = true

  class << self
    # @return [Keeper, nil] caches documents; nil until {Castellan.keep} is called
    attr_accessor :keeper

    # @return [Serve::Tracing, nil] of the last `Castellan.app` with `trace`; reports `Castellan.cache.fetch`
    attr_accessor :tracing

    # @return [String, nil] the revision of the application's code, if the application sets one; see
    #   {Keeper::Revision}
    def revision
      @revision.respond_to?(:call) ? @revision.call : @revision
    end

    # @param revision [String, #call, nil] in Rails `config.castellan.revision`
    attr_writer :revision

    # @return [Boolean] whether the records of a document load their associations together where the document,
    #   its resource or its serializer says nothing; true by default, false while `CASTELLAN=off` is set
    def together
      @together && !off?
    end

    # @param value [Boolean] in Rails `config.castellan.together`
    # @raise [ConfigurationError] for anything else
    def together=(value)
      raise ConfigurationError, "Castellan.together must be true or false, got #{value.inspect[0, 60]}" unless [true, false].include?(value)

      @together = value
    end
  end

  # @return [Boolean] whether `CASTELLAN=off` is set; read on each call, so that a console can switch it
  def self.off?
    ENV["CASTELLAN"] == "off"
  end
end
