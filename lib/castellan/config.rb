# frozen_string_literal: true

# What the environment says about the whole of Castellan. `CASTELLAN=off` switches everything off: no instrument
# subscribes, no middleware records, every cache layer is passed by; documents are still rendered, because an
# application that renders with Castellan has no other renderer.
module Castellan
  class << self
    # @return [Keeper, nil] keeps documents; nil until {Castellan.keep} is called
    attr_accessor :keeper

    # @return [String, nil] the revision of the application's code, where it names one itself: see {Keeper::Revision}
    def revision
      @revision.respond_to?(:call) ? @revision.call : @revision
    end

    # @param revision [String, #call, nil] in Rails set it as `config.castellan.revision`
    attr_writer :revision
  end

  # @return [Boolean] whether `CASTELLAN=off` is set in the environment. Read at each call, so that a console can switch.
  def self.off?
    ENV["CASTELLAN"] == "off"
  end
end
