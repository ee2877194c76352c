# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "call_site"
require_relative "endpoint_name"
require_relative "lazy_body"
require_relative "fingerprint"
require_relative "figures"
require_relative "finding"
require_relative "store"
require_relative "instrument"
require_relative "detect"

module Castellan
  # Records a request or block: time by part, queries with call sites and findings, objects, samples.
  #
  #   use Castellan::Profile::Middleware      # in config.ru; the page is at /castellan
  #   Castellan::Profile.run { User.all.map { |user| user.employee&.number } }.to_text
  #
  # With `CASTELLAN=off` it records nothing.
  module Profile
    autoload :MemoryDepth, "castellan/profile/memory_depth"
    autoload :StackprofDepth, "castellan/profile/stackprof_depth"
    autoload :Token, "castellan/profile/token"

    # Profiles a block.
    # @param depth [String, Symbol] one of {Depth::NAMES}
    # @param literals [Boolean] whether to keep the literal values in the SQL
    # @return [Result] with `CASTELLAN=off` an empty one with a note
    # @raise [ConfigurationError] for an unknown depth; exceptions of the block are not rescued
    def self.run(depth: Depth::DEFAULT, literals: false, &block)
      unless Depth::NAMES.include?(depth.to_s)
        raise ConfigurationError, "there is no depth #{depth.inspect}; write one of #{Depth::NAMES.join(", ")}"
      end
      return record(depth.to_s, literals, &block) unless Castellan.off?

      yield
      Result.new(id: "off", notes: ["CASTELLAN=off: nothing was recorded"])
    end

    def self.record(depth, literals, &block)
      session = Session.new(depth: depth, literals: literals)
      session.record(&block)
      session.finish
    ensure
      session&.close
    end
    private_class_method :record
  end
end

require_relative "profile/result"
require_relative "profile/result_summary"
require_relative "profile/results"
require_relative "profile/authorization"
require_relative "profile/body_proxy"
require_relative "profile/depth"
require_relative "profile/exchange"
require_relative "profile/middleware"
require_relative "profile/page"
require_relative "profile/recorder"
require_relative "profile/redaction"
require_relative "profile/sampling"
require_relative "profile/server_timing"
require_relative "profile/session"
require_relative "profile/speedscope"
require_relative "profile/text_report"
require_relative "profile/traffic"
require_relative "profile/view_events"
