# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "call_site"
require_relative "endpoint_name"
require_relative "fingerprint"
require_relative "figures"
require_relative "finding"
require_relative "store"
require_relative "instrument"
require_relative "detect"

module Castellan
  # Records one request or block: time by part, queries with call sites and findings, objects, samples.
  #
  #   use Castellan::Profile::Middleware      # in config.ru; the page is at /castellan
  #   Castellan::Profile.run { User.all.map { |user| user.employee&.number } }.to_text
  #
  # With `CASTELLAN=off` nothing is recorded.
  module Profile
    autoload :Authorization, "castellan/profile/authorization"
    autoload :BodyProxy, "castellan/profile/body_proxy"
    autoload :Depth, "castellan/profile/depth"
    autoload :Exchange, "castellan/profile/exchange"
    autoload :MemoryDepth, "castellan/profile/memory_depth"
    autoload :Middleware, "castellan/profile/middleware"
    autoload :Page, "castellan/profile/page"
    autoload :QueryRows, "castellan/profile/query_rows"
    autoload :QueryTable, "castellan/profile/query_table"
    autoload :Recorder, "castellan/profile/recorder"
    autoload :Redaction, "castellan/profile/redaction"
    autoload :Sampling, "castellan/profile/sampling"
    autoload :ServerTiming, "castellan/profile/server_timing"
    autoload :Session, "castellan/profile/session"
    autoload :Speedscope, "castellan/profile/speedscope"
    autoload :StackprofDepth, "castellan/profile/stackprof_depth"
    autoload :TextReport, "castellan/profile/text_report"
    autoload :Token, "castellan/profile/token"
    autoload :Traffic, "castellan/profile/traffic"
    autoload :ViewEvents, "castellan/profile/view_events"

    # Profiles a block.
    # @param depth [String, Symbol] one of {Depth::NAMES}
    # @param literals [Boolean] true keeps the SQL with its literal values
    # @return [Result] empty except for a note with `CASTELLAN=off`
    # @raise [ConfigurationError] for an unknown depth; exceptions of the block pass through
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
