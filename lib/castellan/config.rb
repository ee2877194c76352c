# frozen_string_literal: true

require_relative "errors"
require_relative "option_check"

# Holds the settings of the library.
# With `CASTELLAN=off` in the environment, all instruments, middlewares and caches are off, but documents are
# still rendered.
module Castellan
  @together = true
  NOT_KEEPING = "Castellan.keep was not called: in Rails, set config.castellan.cache_store (Rails.cache is nil before the " \
                "initializers run); elsewhere, write Castellan.keep(store: Castellan::Store::MemoryStore.new, " \
                "versions: Castellan::Versions::ExactVersions.new(DB))"
  private_constant :NOT_KEEPING

  class << self
    # @return [Keeper, nil] caches documents; nil before {Castellan.keep} is called
    attr_accessor :keeper

    # @return [Serve::Tracing, nil] of the last `Castellan.app` with `trace`; reports `Castellan.cache.fetch`
    attr_accessor :tracing

    # @return [String, nil] the revision of the application's code, if the application sets it; see
    #   {Keeper::Revision}
    def revision
      @revision.respond_to?(:call) ? @revision.call : @revision
    end

    # @param revision [String, #call, nil] in Rails `config.castellan.revision`
    # @raise [ConfigurationError] for any other value, and for an empty String
    def revision=(revision)
      unless revision.nil? || revision.respond_to?(:call) || (revision.is_a?(String) && !revision.empty?)
        raise ConfigurationError, "Castellan.revision must be a String that is not empty, callable or nil, " \
                                  "got #{OptionCheck.shown(revision)}; write for example Castellan.revision = ENV[\"GIT_COMMIT\"]"
      end

      @revision = revision
    end

    # @return [Boolean] whether the records of a document load each association together, unless the document,
    #   its resource or its serializer sets it; true by default, false with `CASTELLAN=off`
    def together
      @together && !off?
    end

    # @param value [Boolean] in Rails `config.castellan.together`
    # @raise [ConfigurationError] if the value is neither true nor false
    def together=(value)
      raise ConfigurationError, "Castellan.together must be true or false, got #{value.inspect[0, 60]}" unless [true, false].include?(value)

      @together = value
    end
  end

  # Naming ActiveSupport::JSON would load it where it is only an autoload (Sequel's pg_interval loads no more than the
  # durations of ActiveSupport), and so change `to_json` in the whole process.
  # @api private
  # @return [Boolean] whether the application has loaded ActiveSupport's JSON
  def self.active_support_json? = Hash.method_defined?(:as_json) && !defined?(::ActiveSupport::JSON::Encoding).nil?

  # @return [Boolean] whether `CASTELLAN=off` is set; read on each call, so that you can change it in a
  #   console
  def self.off?
    ENV["CASTELLAN"] == "off"
  end
end
