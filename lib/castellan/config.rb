# frozen_string_literal: true

# Reads the settings of the whole library. `CASTELLAN=off` in the environment disables all instruments,
# middlewares and caches; documents are still rendered.
module Castellan
  class << self
    # @return [Keeper, nil] caches documents; nil until {Castellan.keep} is called
    attr_accessor :keeper

    # @return [String, nil] the revision of the application's code, if the application sets one; see
    #   {Keeper::Revision}
    def revision
      @revision.respond_to?(:call) ? @revision.call : @revision
    end

    # @param revision [String, #call, nil] in Rails `config.castellan.revision`
    attr_writer :revision
  end

  # @return [Boolean] whether `CASTELLAN=off` is set; read on each call, so that a console can switch it
  def self.off?
    ENV["CASTELLAN"] == "off"
  end
end
